"""What the gates of a gateway have counted, out of its `/status.json`.

Rules: pure; who asks the gateway, and how, is the caller's business. It tells counts of a moment ago (`age_s`), and
each of its processes tells its own up to 0.3 s later.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["GateCounts", "counts_since"]

_CHILDREN_S = 0.3


@dataclass(frozen=True, slots=True)
class GateCounts:
    """What the gates have counted so far.

    Attributes:
        admitted: admissions.
        denied: denials.
        permits: permits taken now, by handshakes that are held too.
    """

    admitted: int
    denied: int
    permits: int


def counts_since(status: Mapping[str, Any], *, asked_at: float, since: float) -> GateCounts | None:
    """The counts of all gates together, as of `since` or later; None: these are older, or none are published yet.

    Args:
        status: what the gateway told.
        asked_at: when it was asked, monotonic seconds.
        since: monotonic seconds.
    """
    gates = status["gates"].values()
    if not gates or asked_at - status["age_s"] < since + _CHILDREN_S:
        return None
    return GateCounts(
        admitted=sum(gate["admitted"] for gate in gates),
        denied=sum(sum(gate["denied"].values()) for gate in gates),
        permits=sum(gate["pending"] + gate["open"] + gate["held"] for gate in gates),
    )
