"""The beginning of a life: a new inc in the row of its name, over one that is dead.

A restart of the same name waits like anybody else until the life before is known to be dead: by its guardian at once,
else by its silence. If that one goes on beating, two processes have one name, and this one gives up.
"""

from collections.abc import Callable
from dataclasses import replace

from herdgate_gateway.leases.acts import fence, register
from herdgate_gateway.leases.certainty import until_known
from herdgate_gateway.leases.clocks import Clock
from herdgate_gateway.leases.rows import WorkerRow, worker_key
from herdgate_gateway.leases.table import Done, LeaseTable, TableError
from herdgate_gateway.leases.watching import Watch

__all__ = ["NameInUseError", "begin", "wait_for_name"]

_LOOK_S = 0.25
_MOVES = 3
"""Beats seen that prove another process: a single one may have been on its way when its sender died."""


class NameInUseError(Exception):
    """Another process of this name is alive: its beats move."""


async def begin(table: LeaseTable, clock: Clock, fleet: str, like: WorkerRow, new_inc: Callable[[], str]) -> WorkerRow:
    """Register, as soon as the life before is dead.

    Args:
        like: the row to be, but for its inc.
        new_inc: never the same twice, anywhere.

    Raises:
        NameInUseError: see there.
    """
    watch = Watch(like.lease_ms / 1_000)
    while True:
        seen = await _dead_one(table, clock, fleet, like.worker, watch)
        mine = replace(like, inc=new_inc(), prev=seen.inc if seen else None, hb=0)
        if await _is_registered(table, clock, fleet, mine, seen):
            return mine


async def wait_for_name(table: LeaseTable, clock: Clock, fleet: str, like: WorkerRow) -> None:
    """Until `begin` need not wait for the life before.

    Raises:
        NameInUseError: see there.
    """
    await _dead_one(table, clock, fleet, like.worker, Watch(like.lease_ms / 1_000))


async def _dead_one(table: LeaseTable, clock: Clock, fleet: str, worker: str, watch: Watch) -> WorkerRow | None:
    """The life before, once it is dead; None: there was none."""
    known: WorkerRow | None = None
    moves = 0
    while True:
        try:
            item = await table.read(worker_key(fleet, worker), strong=True)
        except TableError:
            await clock.sleep(_LOOK_S)
            continue
        row = WorkerRow.of(item) if item is not None else None
        if row is None or row.st == "DEAD":
            return row
        moves += known is not None and known.inc == row.inc and known.hb != row.hb
        if moves == _MOVES:
            raise NameInUseError(f"worker {worker!r} is alive in another process: give this one another name")
        known = row
        watch.saw([row], clock.now())
        if not watch.silent(clock.now()) or not isinstance(await table.write(fence(fleet, row)), Done):
            await clock.sleep(_LOOK_S)


async def _is_registered(table: LeaseTable, clock: Clock, fleet: str, mine: WorkerRow, seen: WorkerRow | None) -> bool:
    outcome = await until_known(table, clock, register(fleet, mine, seen))
    if isinstance(outcome, Done):
        return True
    return outcome.item is not None and outcome.item["inc"] == mine.inc and outcome.item["st"] != "DEAD"
