"""How a relayed socket ends when neither side has ended it: what each leg is told, and how old it may become."""

import random
from typing import NamedTuple

from herdgate.core.answers import Invitation
from herdgate.denial import close_reason
from herdgate_gateway.close_codes import (
    BAD_GATEWAY,
    GOING_AWAY,
    LOST,
    MESSAGE_TOO_BIG,
    POLICY_VIOLATION,
    SERVICE_RESTART,
    to_client,
)

__all__ = [
    "BROKEN",
    "CLIENT_STALLED",
    "IDLE",
    "WORKER_STALLED",
    "Ending",
    "Farewell",
    "back_soon",
    "jittered",
    "too_old",
]

JITTER = 0.1
"""By this share a lifetime may be shorter, so that those who came together do not leave together."""

PROTOCOL_ERROR = 1002


class Farewell(NamedTuple):
    """What one leg is told at the end: a code that may be sent (None: a close without one), and a reason."""

    code: int | None
    reason: str = ""


class Ending(NamedTuple):
    """How it ended.

    Attributes:
        client: what the client is told; None: it has ended the leg itself.
        worker: what the worker is told, unless it has ended the leg itself.
    """

    client: Farewell | None
    worker: Farewell


IDLE = Ending(Farewell(GOING_AWAY, "idle"), Farewell(GOING_AWAY, "idle"))
CLIENT_STALLED = Ending(Farewell(POLICY_VIOLATION, "does not read"), Farewell(GOING_AWAY, "the client does not read"))
WORKER_STALLED = Ending(Farewell(BAD_GATEWAY, "the worker does not read"), Farewell(POLICY_VIOLATION, "does not read"))

BROKEN = {
    ("client", "too big"): Ending(
        Farewell(MESSAGE_TOO_BIG, "message too big"), Farewell(GOING_AWAY, "the client broke a limit")
    ),
    ("client", "breach"): Ending(
        Farewell(PROTOCOL_ERROR, "protocol error"), Farewell(GOING_AWAY, "the client broke the protocol")
    ),
    ("worker", "too big"): Ending(Farewell(to_client(LOST)), Farewell(MESSAGE_TOO_BIG, "message too big")),
    ("worker", "breach"): Ending(Farewell(to_client(LOST)), Farewell(PROTOCOL_ERROR, "protocol error")),
}
"""By who broke what."""


def back_soon() -> Farewell:
    """The client is to come back within 100 to 1000 ms, drawn anew for each."""
    return Farewell(SERVICE_RESTART, close_reason(Invitation(random.uniform(0.1, 1), None)))


def too_old() -> Ending:
    """A socket that has reached its lifetime."""
    return Ending(back_soon(), Farewell(GOING_AWAY))


def jittered(max_age_s: float | None) -> float | None:
    """The lifetime of one socket, seconds; None: for ever."""
    return None if max_age_s is None else max_age_s * (1 - JITTER * random.random())
