"""Who is there, and where shards ought to be: polls the workers' rows, and declares dead who has been silent.

Rules:
- of up to eight workers the rows that are known are read at every poll, all there are at the first ten and at every
  tenth: who comes is less urgent than who goes. Of more, all are read at every second poll: by row it would cost more;
- whoever has had trouble with its own beats declares nobody dead for two leases, as it is probably the one that is cut
  off; but not longer, or nobody would, in a brown-out of the table that hits all alike;
- only workers that are up and have beaten have ranks; a change of them is news.
"""

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from herdgate_gateway.leases.acts import fence
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.placement import Placement
from herdgate_gateway.leases.rows import WorkerRow, worker_key, worker_partitions
from herdgate_gateway.leases.table import Done
from herdgate_gateway.leases.watching import Watch

__all__ = ["Members"]

_WHOLE_EVERY = 10
_FEW = 8


class _View(NamedTuple):
    up: dict[str, WorkerRow]
    placement: Placement
    since: float


class Members:
    """The others, as one life sees them.

    Args:
        shards: of the fleet.
        trouble_at: when its own beats had trouble last.
    """

    def __init__(self, life: Life, watch: Watch, shards: int, trouble_at: Callable[[], float | None]) -> None:
        self._life, self._watch, self._shards, self._trouble_at = life, watch, shards, trouble_at
        self._holding_back_since: float | None = None
        self._known: object = None
        self._polls = 0
        self._view = _View({}, Placement({}, shards), life.clock.now())

    @property
    def placement(self) -> Placement:
        """Of the workers that are up."""
        return self._view.placement

    @property
    def up(self) -> dict[str, WorkerRow]:
        """Those workers, by name."""
        return self._view.up

    @property
    def since(self) -> float:
        """When they changed last."""
        return self._view.since

    async def poll(self) -> bool:
        """Look at the workers.

        Returns:
            True if there is news: somebody came, went, is going or was declared dead.

        Raises:
            TableError: they could not be read.
        """
        rows = await self._look()
        now = self._life.clock.now()
        self._watch.saw(rows, now)
        was_declared = await self._declare_dead(now)
        return self._take_over(rows, now) or was_declared

    def patience_s(self) -> float:
        """Seconds until somebody else may have to be declared dead, if this one may do so; inf: nobody."""
        now = self._life.clock.now()
        if not self._life.may_act() or self._holds_back(now):
            return inf
        return self._watch.patience_s(now, but=self._life.row.inc)

    async def _look(self) -> list[WorkerRow]:
        """All that there are, or those that are known; of many, all are cheaper, and once a second will do."""
        known, number = len(self._watch.rows), self._polls
        self._polls += 1
        if number < _WHOLE_EVERY or number % _WHOLE_EVERY == 0:
            return await self._all()
        if known <= _FEW:
            return await self._known_ones()
        return await self._all() if number % 2 == 0 else list(self._watch.rows.values())

    async def _all(self) -> list[WorkerRow]:
        rows: list[WorkerRow] = []
        for partition in worker_partitions(self._life.fleet):
            rows += map(WorkerRow.of, await self._life.table.query(partition, strong=False))
        return rows

    async def _known_ones(self) -> list[WorkerRow]:
        keys = [worker_key(self._life.fleet, worker) for worker in self._watch.rows]
        return [WorkerRow.of(item) for item in (await self._life.table.read_many(keys, strong=False)).values()]

    def without(self, worker: str) -> Placement:
        """The ranks of all the others."""
        return Placement({name: row.capacity for name, row in self.up.items() if name != worker}, self._shards)

    def _take_over(self, rows: list[WorkerRow], now: float) -> bool:
        known = {(row.worker, row.inc, row.st, row.capacity, row.hb > 0) for row in rows}
        if known == self._known:
            return False
        self._known = known
        up = {row.worker: row for row in rows if row.st == "UP" and row.hb > 0}
        self._view = _View(up, Placement({name: row.capacity for name, row in up.items()}, self._shards), now)
        return True

    async def _declare_dead(self, now: float) -> bool:
        silent = [row for row in self._watch.silent(now) if row.inc != self._life.row.inc]
        if self._holds_back(now, is_due=bool(silent)) or not silent:
            return False
        was_declared = False
        for row in silent:
            if self._life.may_act():
                outcome = await self._life.table.write(fence(self._life.fleet, row))
                was_declared = was_declared or isinstance(outcome, Done)
        return was_declared

    def _holds_back(self, now: float, *, is_due: bool = False) -> bool:
        """True while it is probably me.

        Args:
            is_due: somebody would be declared dead now; so long is held back, counted from then.
        """
        trouble_at, patience_s = self._trouble_at(), 2 * self._life.row.lease_ms / 1_000
        if trouble_at is None or now - trouble_at > patience_s:
            self._holding_back_since = None
            return False
        if self._holding_back_since is None and is_due:
            self._holding_back_since = now
        return self._holding_back_since is None or now - self._holding_back_since <= patience_s
