"""What an observer has seen of the others, and whom it may take for dead. Pure.

Only beats count that were seen to move, by the observer's own clock: nobody's timestamps are compared. An answer counts
from the moment it was here.
"""

from collections.abc import Iterable
from math import inf
from typing import Literal, NamedTuple

from herdgate_gateway.leases.rights import FENCE
from herdgate_gateway.leases.rows import WorkerRow

__all__ = ["Verdict", "Watch"]

Verdict = Literal["alive", "dead", "vanished", "unclear"]
"""`vanished`: its row is gone for so long that a tombstone may be set; `unclear`: look again later."""

_MOST_GONE = 10_000


class _Seen(NamedTuple):
    row: WorkerRow
    since: float


class Watch:
    """The memory of one observer.

    Args:
        lease_s: the lease of those whose row does not say.
    """

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._seen: dict[str, _Seen] = {}
        self._gone: dict[str, float] = {}  # inc -> its name was first seen without it, or without a row, then

    @property
    def rows(self) -> dict[str, WorkerRow]:
        """The latest row of every worker."""
        return {worker: seen.row for worker, seen in self._seen.items()}

    def saw(self, rows: Iterable[WorkerRow], now: float) -> None:
        """All workers there are, in an answer that is here now."""
        before, self._seen = self._seen, {}
        for row in rows:
            known = before.get(row.worker)
            moved = known is None or (known.row.inc, known.row.hb) != (row.inc, row.hb)
            self._seen[row.worker] = _Seen(row, now if known is None or moved else known.since)

    def silent(self, now: float) -> list[WorkerRow]:
        """Who is not dead and has not beaten for so long that it may be declared so."""
        return [
            seen.row
            for seen in self._seen.values()
            if seen.row.st != "DEAD" and now - seen.since > FENCE * self._lease_of(seen.row)
        ]

    def patience_s(self, now: float, *, but: str) -> float:
        """Seconds until the next one, but for this inc, may be declared dead if no beat of it is seen; inf: nobody."""
        ends = [seen.since + FENCE * self._lease_of(seen.row) for seen in self._seen.values() if _is_watched(seen, but)]
        return min((end - now for end in ends if end >= now), default=inf)

    def judge(self, inc: str, row: WorkerRow | None, now: float) -> Verdict:
        """Whether an inc that owns a shard is dead.

        Args:
            row: of its worker's name, read strongly *after* the row of the shard; None: there is none.
            now: when the answer was here.
        """
        if row is not None and inc in (row.inc, row.prev):
            self._gone.pop(inc, None)
            return "dead" if row.prev == inc or row.st == "DEAD" else "alive"
        if len(self._gone) > _MOST_GONE:
            del self._gone[next(iter(self._gone))]
        if now - self._gone.setdefault(inc, now) <= FENCE * self._lease_of(row):
            return "unclear"
        return "vanished" if row is None else "dead"

    def forget(self, inc: str) -> None:
        """Nothing is owned by it any more."""
        self._gone.pop(inc, None)

    def _lease_of(self, row: WorkerRow | None) -> float:
        told = row.lease_ms / 1_000 if row is not None else 0.0
        return max(told, self._lease_s) if row is None or row.st == "DEAD" or not told else told


def _is_watched(seen: _Seen, but: str) -> bool:
    return seen.row.st != "DEAD" and seen.row.inc != but
