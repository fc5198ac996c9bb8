"""What came of a round: a worker and a gateway were killed, one after the other, and clients came back."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from herdgate_loadtest.engine import Record

__all__ = ["Loss", "Round"]

_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Loss:
    """One process that was killed.

    Attributes:
        killed: its name.
        owned_s: seconds from then until every shard had an owner again; None: shards kept their owners.
        record: the result record of those who lost their socket by it.
    """

    killed: str
    owned_s: float | None
    record: Record

    @property
    def back_s(self) -> float:
        """Seconds from then until all clients were back; infinite: never."""
        return self.record.t100_s


@dataclass(frozen=True, slots=True)
class Round:
    """All of them, in order."""

    losses: Sequence[Loss]

    @property
    def is_good(self) -> bool:
        """Every client came back, every shard has an owner, and the records are valid."""
        return all(loss.record.valid and math.isfinite(loss.back_s + (loss.owned_s or 0.0)) for loss in self.losses)

    def as_dict(self) -> dict[str, Any]:
        """Ready for `json.dumps`."""
        return {
            "valid": all(loss.record.valid for loss in self.losses),
            "losses": [_told(each) for each in self.losses],
        }


def _told(loss: Loss) -> dict[str, Any]:
    record = loss.record.as_dict()
    return {"killed": loss.killed, "owned_s": _plain(loss.owned_s), "back_s": record["t100_s"], "record": record}


def _plain(seconds: float | None) -> float | str | None:
    """As in a record."""
    if seconds is None:
        return None
    return round(seconds, _DIGITS) if math.isfinite(seconds) else "Infinity"
