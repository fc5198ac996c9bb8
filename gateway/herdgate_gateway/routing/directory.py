"""Keeps `Owners` up to date, so that an arrival waits for no read.

    all shards         when it begins, when news may have been missed, and once a minute
    some shards        strongly, when a worker says that it is not the owner, or cannot be reached; what is asked for
                       while a read is under way is the next one
    shards of nobody   twice a second, as long as there are some that were asked for
    news               over Redis, of who has gained what and whose life is over: looked up in the table, strongly

While the table is away what is known stays known; without Redis changes are found by refusals and reads.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from herdgate_gateway.leases.channel import Channel, News
from herdgate_gateway.leases.rows import SHARDS, ShardRow, WorkerRow, shard_key, worker_key
from herdgate_gateway.leases.table import LeaseTable, TableError
from herdgate_gateway.routing.owners import Owner, Owners

__all__ = ["Directory"]

ROUND_S, AGAIN_S, ORPHANS_S = 60.0, 1.0, 0.5
READ_S = 1.0
"""Seconds that an arrival waits for the read of its shard."""

HAND_OVER_S, FOLLOW_S = 0.4, 0.1
"""Seconds that an arrival waits for a shard that is being handed over, and between two reads of it."""

WATCH_S = 30.0
"""Seconds that a shard of nobody is looked after since it was asked for."""

_logger = logging.getLogger("herdgate.routing")


class Directory:
    """Of one fleet, for one gateway. Belongs to one event loop.

    Args:
        table: where shards are.
        fleet: its name.
        owners: what is kept up to date.
        channel: where news is heard; None: nowhere.
        changed: called when there is something new.
    """

    def __init__(
        self, table: LeaseTable, fleet: str, owners: Owners, channel: Channel | None, changed: Callable[[], None]
    ) -> None:
        self._table, self._fleet, self._owners, self._channel = table, fleet, owners, channel
        self._changed = changed
        self._wanted: set[int] = set()
        self._next_read: asyncio.Task[None] | None = None
        self._last_read: asyncio.Task[None] | None = None
        self._looking: set[asyncio.Task[None]] = set()
        self._orphans: dict[int, float] = {}
        self._followed: dict[int, asyncio.Event] = {}
        self._missed, self._asked = asyncio.Event(), asyncio.Event()
        self._running: list[asyncio.Task[None]] = []
        self.is_read = False

    def start(self) -> None:
        """Begin, in the running loop."""
        work = [self._refresh(), self._look_after_orphans()]
        if self._channel is not None:
            work.append(self._channel.run(self.hear, self._missed.set))
        self._running = [asyncio.get_running_loop().create_task(each) for each in work]

    async def aclose(self) -> None:
        """End, and let go of table and channel."""
        tasks = [*self._running, *self._looking, *filter(None, (self._last_read, self._next_read))]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._table.aclose()
        if self._channel is not None:
            await self._channel.aclose()

    def want(self, shard: int) -> None:
        """Somebody asks for a shard that nobody owns."""
        if shard not in self._orphans:
            self._asked.set()
        self._orphans[shard] = asyncio.get_running_loop().time() + WATCH_S

    async def read(self, shard: int) -> None:
        """Read who owns a shard, strongly, and together with whatever else is asked for. It ends in time."""
        await asyncio.wait((self._reading([shard]),), timeout=READ_S)

    def _reading(self, shards: Iterable[int]) -> asyncio.Task[None]:
        """One read at a time: while it is under way, the next one gathers."""
        self._wanted.update(shards)
        if self._next_read is None:
            self._next_read = asyncio.get_running_loop().create_task(self._read_wanted(self._last_read))
        return self._next_read

    async def follow(self, shard: int, epoch: int) -> None:
        """Its owner of this epoch says that it is none: find the next one, which may just be about to take over."""
        end = asyncio.get_running_loop().time() + HAND_OVER_S
        changed = self._followed.setdefault(shard, asyncio.Event())
        try:
            while not changed.is_set() and asyncio.get_running_loop().time() < end:
                await self.read(shard)
                owner = self._owners.find(shard)
                if owner is not None and owner.epoch > epoch:
                    return
                await _wait(changed, FOLLOW_S)
        finally:
            self._followed.pop(shard, None)

    async def _read_wanted(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait((before,))
        shards, self._wanted = self._wanted, set()
        self._last_read, self._next_read = self._next_read, None
        try:
            await self._read(shards, strong=True)
        except TableError as error:
            _logger.debug("%d shards cannot be read: %s", len(shards), error)

    async def _read(self, shards: Iterable[int], *, strong: bool) -> None:
        items = await self._table.read_many([shard_key(self._fleet, shard) for shard in shards], strong=strong)
        self._learn((row.shard, Owner.of(row)) for row in map(ShardRow.of, items.values()))

    def _learn(self, told: Iterable[tuple[int, Owner]]) -> None:
        news = [shard for shard, owner in told if self._owners.learn(shard, owner)]
        if not news:
            return
        self._changed()
        for shard in news:
            if (waited_for := self._followed.get(shard)) is not None:
                waited_for.set()

    async def _refresh(self) -> None:
        """All shards, now and then."""
        is_well = True
        while True:
            self._missed.clear()
            try:
                await self._read(range(SHARDS), strong=False)
                if not is_well:
                    _logger.info("the lease table answers again")
                is_well = self.is_read = True
            except TableError as error:
                if is_well:
                    _logger.warning("the lease table does not answer, so owners are those known by now: %s", error)
                is_well = False
            await _wait(self._missed, ROUND_S if is_well else AGAIN_S)

    async def _look_after_orphans(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._asked.wait()
            now = loop.time()
            waiting = set(self._owners.orphans(self._orphans))
            self._orphans = {shard: end for shard, end in self._orphans.items() if end > now and shard in waiting}
            if not self._orphans:
                self._asked.clear()
                continue
            try:
                await self._read(self._orphans, strong=False)
            except TableError as error:
                _logger.debug("shards without an owner cannot be read: %s", error)
            await asyncio.sleep(ORPHANS_S)

    def hear(self, news: News) -> None:
        """What the channel brings. Anybody may write there: what it says is looked up, and never believed."""
        inc, told, epochs = news.get("dead"), news.get("owner"), news.get("epochs")
        if isinstance(inc, str):
            for worker in {owner.worker for owner in self._owners if owner.inc == inc}:
                self._look_up(worker, inc)
        elif isinstance(told, dict) and isinstance(epochs, dict):
            self._reading(int(shard) for shard in epochs if shard.isdecimal() and int(shard) < SHARDS)

    def _look_up(self, worker: str, inc: str) -> None:
        task = asyncio.get_running_loop().create_task(self._bury(worker, inc))
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)

    async def _bury(self, worker: str, inc: str) -> None:
        """Somebody says that this life of a worker is over: is it?"""
        try:
            item = await self._table.read(worker_key(self._fleet, worker), strong=True)
        except TableError as error:
            _logger.debug("worker %s cannot be looked up: %s", worker, error)
            return
        row = None if item is None else WorkerRow.of(item)
        if row is None or row.inc != inc or row.st == "DEAD":
            self._owners.bury(inc)
            self._changed()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
