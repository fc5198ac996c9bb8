"""Finding work: reads shards, judges their owners, adopts what is mine, takes what is nobody's.

Rules:
- the row of a shard is read first, the row of its owner's name strongly after it: read the other way round, an owner
  that came in between would look dead;
- nothing is taken without a right that runs, both before the write and after its answer; what was taken in vain, or
  without my knowing, is found here again and adopted;
- what I hold and the table gives to somebody else is dropped;
- an owner that lives is told what it owns: it may have missed that its write was done, or that it was given the shard.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from herdgate_gateway.leases.acts import epoch_after, take, tombstone
from herdgate_gateway.leases.at_once import for_each
from herdgate_gateway.leases.handover import Tell
from herdgate_gateway.leases.holdings import Holdings
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.rows import Key, ShardRow, WorkerRow, shard_key, worker_key
from herdgate_gateway.leases.table import Unknown
from herdgate_gateway.leases.watching import Watch

__all__ = ["Sweeper"]

_AT_ONCE = 32


class _Found(NamedTuple):
    shard: int
    row: ShardRow | None


class Sweeper:
    """Sweeps for one life.

    Args:
        watch: what this observer knows of the others.
        tell: where news is carried to an owner.
        generation: see `acts.epoch_after`; shards of a lower one are not served.
    """

    def __init__(self, life: Life, holdings: Holdings, watch: Watch, tell: Tell, *, generation: int = 0) -> None:
        self._life, self._holdings, self._watch, self._tell = life, holdings, watch, tell
        self._generation = generation
        self._tried: set[int] = set()

    @property
    def mine(self) -> set[int]:
        """What is held, or may be mine without my knowing: a take whose answer did not come."""
        return self._tried.union(self._holdings)

    async def sweep(self, shards: Collection[int]) -> bool:
        """Go through these shards.

        Returns:
            True if some owner could not be judged yet: look again soon.

        Raises:
            TableError: a read failed.
        """
        found = await self._read(shards)
        mine = [each.row for each in found if each.row is not None and each.row.inc == self._life.row.inc]
        self._adopt(mine)
        self._drop_others(found)
        self._tried.difference_update(row.shard for row in mine)
        orphans, is_unclear = await self._orphans([each for each in found if each.row not in mine])
        orphans += [_Found(row.shard, row) for row in mine if self._is_of_before(row)]
        await for_each(orphans, self._take, most=_AT_ONCE)
        return is_unclear

    async def look(self, shard: int) -> ShardRow | None:
        """Who owns it: held from now on if that is me, dropped if it is somebody else; nothing is taken.

        Raises:
            TableError: it could not be read.
        """
        found = await self._read([shard])
        row = found[0].row
        if row is not None and row.inc == self._life.row.inc:
            self._adopt([row])
        self._drop_others(found)
        return row

    async def _read(self, shards: Collection[int]) -> list[_Found]:
        keys = {shard_key(self._life.fleet, shard): shard for shard in shards}
        items = await self._life.table.read_many(keys, strong=True)
        return [_Found(shard, ShardRow.of(items[key]) if key in items else None) for key, shard in keys.items()]

    def _adopt(self, mine: Iterable[ShardRow]) -> None:
        for row in mine:
            if self._life.may_gain() and not self._is_of_before(row):
                self._holdings.hold(row.shard, row.epoch, self._life.clock.now())

    def _is_of_before(self, row: ShardRow) -> bool:
        """True for an ownership of a generation that is over: to be taken anew, if it is mine or nobody's."""
        return row.epoch < epoch_after(0, self._generation)

    def _drop_others(self, found: Iterable[_Found]) -> None:
        for shard, row in found:
            held = self._holdings.epoch(shard)
            if held is not None and row is not None and row.inc != self._life.row.inc and row.epoch > held:
                self._holdings.gave(shard, held)

    async def _orphans(self, others: Sequence[_Found]) -> tuple[list[_Found], bool]:
        """Those that nobody owns, or the dead; and whether that is unclear of some."""
        rows = await self._owners({row.owner for _, row in others if row is not None})
        now, orphans, is_unclear = self._life.clock.now(), [], False
        for each in others:
            owner = rows.get(each.row.owner) if each.row is not None else None
            verdict = "dead" if each.row is None else self._watch.judge(each.row.inc, owner, now)
            if verdict == "dead":
                orphans.append(each)
            elif verdict == "alive" and owner is not None:
                self._tried.discard(each.shard)  # whatever is still on its way to it will be lost
                self._tell(owner, each.shard)
            else:
                is_unclear = True
            if verdict == "vanished" and each.row is not None:
                await self._set_tombstone(each.row)
        return orphans, is_unclear

    async def _set_tombstone(self, row: ShardRow) -> None:
        if self._life.may_act():
            await self._life.table.write(tombstone(self._life.fleet, row.owner, row.inc))
            self._watch.forget(row.inc)

    async def _owners(self, names: Collection[str]) -> dict[str, WorkerRow]:
        keys: list[Key] = [worker_key(self._life.fleet, name) for name in names]
        items = await self._life.table.read_many(keys, strong=True) if keys else {}
        return {row.worker: row for row in map(WorkerRow.of, items.values())}

    async def _take(self, found: _Found) -> None:
        life = self._life
        if not life.may_gain():
            return
        self._tried.add(found.shard)
        outcome = await life.table.write(take(life.fleet, life.row, found.shard, found.row, self._generation))
        if isinstance(outcome, Unknown):
            return
        item = outcome.item
        if item is not None and item["inc"] == life.row.inc:  # lost to myself: the time before it was done after all
            if not life.may_gain():
                return
            self._holdings.hold(found.shard, item["epoch"], life.clock.now())
        self._tried.discard(found.shard)
