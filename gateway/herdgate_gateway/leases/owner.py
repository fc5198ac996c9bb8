"""A worker that owns shards: lives one life after the other, until it is stopped.

    begin -> beats renew the right -> polls see the others, sweeps find shards -> hold them
          -> the right runs out    : drop all, go on; what is still mine is found again when beats come through
          -> a beat is refused     : this life is over, begin another
          -> retire                : say that no more shards are wanted; those held may be given away, a few at a time
          -> stop                  : the same, give all that is left away, be dead

Everything runs in one loop but the beats, which may have a thread of their own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable

from herdgate_gateway.leases.effects import Effects
from herdgate_gateway.leases.holdings import Holdings
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.present import Present
from herdgate_gateway.leases.registration import begin
from herdgate_gateway.leases.rights import Right
from herdgate_gateway.leases.rows import ShardRow, WorkerRow
from herdgate_gateway.leases.setup import Beating, Setup
from herdgate_gateway.leases.watching import Watch

__all__ = ["Beating", "Setup", "ShardOwner"]


async def _nothing(shard: int) -> None:
    """There is nothing to end before a shard is given away."""


class ShardOwner:
    """See above.

    Args:
        gained: told of a shard and its epoch when it may be acted on.
        lost: told when it may not any more.
        release: ends what has to write before a shard is given away; it has 5 s. `lost` follows.
    """

    def __init__(
        self,
        setup: Setup,
        gained: Callable[[int, int], None],
        lost: Callable[[int, int], None],
        release: Callable[[int], Awaitable[None]] = _nothing,
    ) -> None:
        self._setup = setup
        self._gained, self._lost, self._release = gained, lost, release
        self._watch = Watch(setup.row.lease_ms / 1_000)
        self._present: Present | None = None
        self._asked_to_stop, self._has_left = asyncio.Event(), asyncio.Event()
        self._is_leaving = False

    @property
    def is_stopping(self) -> bool:
        """True once `retire` or `stop` was called."""
        return self._asked_to_stop.is_set()

    @property
    def life(self) -> Life | None:
        """The present one; None between two."""
        return None if self._present is None else self._present.life

    @property
    def held(self) -> tuple[int, ...]:
        """The shards that may be acted on."""
        present = self._present
        return () if present is None else tuple(s for s in present.holdings if self.epoch(s) is not None)

    @property
    def effects(self) -> Effects | None:
        """Of the present life."""
        present = self._present
        return None if present is None else Effects(present.life, self.epoch, present.holdings.gave)

    def epoch(self, shard: int) -> int | None:
        """Of a shard that may be acted on at this moment; None: it may not."""
        present = self._present
        return present.holdings.epoch(shard) if present is not None and present.life.may_act() else None

    async def adopt(self, shard: int) -> ShardRow | None:
        """Read who owns a shard, strongly, and hold it from now on if that is me.

        Returns:
            Its row; None: nobody has owned it yet, or there is no right that would let me look.

        Raises:
            TableError: it could not be read.
        """
        present = self._present
        return await present.look_at(shard) if present is not None and shard in range(self._setup.shards) else None

    def notice(self, shards: Iterable[int]) -> None:
        """Somebody says that these are mine, or may be taken: look at once."""
        if self._present is not None:
            known = range(self._setup.shards)
            self._present.notice(shard for shard in shards if shard in known)

    def news(self) -> None:
        """Somebody says that a worker has died: look at once."""
        if self._present is not None:
            self._present.look()

    async def run(self) -> None:
        """Live until `stop`, or cancelled.

        Raises:
            NameInUseError: another process of this name is alive.
        """
        setup = self._setup
        while (row := await self._begin()) is not None:
            life = Life(setup.table, setup.clock, setup.fleet, row, Right(row.lease_ms / 1_000))
            holdings = Holdings(self._gained, self._lost)
            self._present = Present(setup, life, self._watch, holdings, self._release)
            try:
                await self._present.live()
            finally:
                self._present = None
        await self._has_left.wait()

    async def retire(self) -> None:
        """Say that no more shards are wanted; those held are kept until they are given. `stop` has to follow."""
        self._asked_to_stop.set()
        if self._present is not None:
            await self._present.retire()

    async def give(self, shards: Collection[int]) -> None:
        """Give those of these shards away that are held, as long as the right runs; without anybody else, none."""
        if self._present is not None:
            await self._present.give(shards)

    async def stop(self) -> None:
        """Give everything away and be dead, then `run` returns; only the first call does.

        It ends when the right does, whatever the table says. Cancelled, it leaves the rest to the others to notice.
        """
        if self._is_leaving:
            return
        self._is_leaving = True
        self._asked_to_stop.set()
        try:
            if self._present is not None:
                await self._present.leave()
        finally:
            self._has_left.set()

    async def _begin(self) -> WorkerRow | None:
        """The row of a life that has begun; None: there shall be none."""
        if self.is_stopping:
            return None
        setup = self._setup
        beginning = asyncio.ensure_future(begin(setup.table, setup.clock, setup.fleet, setup.row, setup.new_inc))
        asked = asyncio.ensure_future(self._asked_to_stop.wait())
        try:
            await asyncio.wait((beginning, asked), return_when=asyncio.FIRST_COMPLETED)
            return None if self.is_stopping else beginning.result()
        finally:
            beginning.cancel()  # a row that is written all the same never beats
            asked.cancel()
