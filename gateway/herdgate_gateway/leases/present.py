"""The present life of an owner and all that goes on in it: beats, the guard of its right, polls, sweeps, hand overs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import suppress
from math import inf
from typing import Any

from herdgate_gateway.leases.acts import set_state
from herdgate_gateway.leases.agenda import Agenda
from herdgate_gateway.leases.certainty import until_known
from herdgate_gateway.leases.clocks import Clock
from herdgate_gateway.leases.handover import give_away
from herdgate_gateway.leases.holdings import Holdings
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.members import Members
from herdgate_gateway.leases.placement import Placement
from herdgate_gateway.leases.rows import ShardRow, WorkerRow, WorkerState
from herdgate_gateway.leases.setup import Setup
from herdgate_gateway.leases.sweep import Sweeper
from herdgate_gateway.leases.table import TableError
from herdgate_gateway.leases.watching import Watch

__all__ = ["Present"]

_LOOK_S, _SOON_S = 0.1, 0.02
_SPREAD = 0.1  # of the time between two polls
_PACE = 16  # shards handed over to a joiner by one poll
_RELEASE_S = 5.2  # what was told to end within 5 s has ended by then
_AT_ONCE = 4  # as `handover` has it
_RESIDENCE = 2  # leases that a shard stays, and that the workers have to be the same, before it is handed over
_logger = logging.getLogger("herdgate.leases")


class Present:
    """See above. Arguments as `owner.ShardOwner` has them."""

    def __init__(
        self,
        setup: Setup,
        life: Life,
        watch: Watch,
        holdings: Holdings,
        release: Callable[[int], Awaitable[None]],
    ) -> None:
        self.life, self.holdings = life, holdings
        self._setup, self._clock, self._release = setup, life.clock, release
        self._beats = setup.beats(life)
        self._members = Members(life, watch, setup.shards, lambda: self._beats.trouble_at)
        self._sweeper = Sweeper(life, holdings, watch, setup.tell, generation=setup.generation)
        self._agenda = Agenda(setup.random)
        self._noticed: set[int] = set()
        self._woken, self._polled = asyncio.Event(), asyncio.Event()
        self._over = asyncio.Event()
        self._looking: list[asyncio.Task[None]] = []
        self._others: tuple[Mapping[str, WorkerRow], Placement] | None = None
        self._is_retired = False
        self._has_lapsed = True
        self._settled_at = 0.0

    async def live(self) -> None:
        """Until a beat is refused, or `leave` is through."""
        async with asyncio.TaskGroup() as group:
            beating = [
                group.create_task(self._beats.run(self._renewed, self._over.set)),
                group.create_task(self._guard_right()),
            ]
            self._looking = [group.create_task(self._poll()), group.create_task(self._sweep())]
            try:
                await self._over.wait()
            finally:
                self.holdings.lapse()
                for task in (*beating, *self._looking):
                    task.cancel()

    async def look_at(self, shard: int) -> ShardRow | None:
        return await self._sweeper.look(shard) if self.life.may_act() else None

    async def retire(self) -> None:
        """Say that no more shards are wanted. Who says so has no rank; what is given to it all the same is found."""
        self._is_retired = True
        await self._while(self._say("DRAINING"), self.life.may_act)

    async def give(self, shards: Collection[int]) -> None:
        await self._while(self._give(self._successors(shards)), self.life.may_act)

    async def leave(self) -> None:
        """Give all away, as long as the right runs, and be dead."""
        for task in self._looking:
            task.cancel()
        try:
            await self._while(self._give_all(), self.life.may_act)
        finally:
            self.holdings.lapse()
            self.life.right.lose()
            self._over.set()
        silent_at = self._clock.now() + self.life.row.lease_ms / 1_000  # then the others see it by themselves
        await self._while(self._say("DEAD"), lambda: self._clock.now() < silent_at)

    async def _give_all(self) -> None:
        if not self._is_retired:
            await self._say("DRAINING")
        nobody: dict[int, WorkerRow | None] = dict.fromkeys(self.holdings)
        await self._give(nobody | self._successors(nobody))

    async def _give(self, successors: Mapping[int, WorkerRow | None]) -> None:
        """Each of them as soon as what goes on in it has ended; none waits for that of another one."""
        turn = asyncio.Semaphore(_AT_ONCE)

        async def give(shard: int) -> None:
            await self._released(shard)
            if (successor := successors[shard]) is not None:
                async with turn:
                    await give_away(self.life, self.holdings, {shard: successor}, self._setup.tell)

        mine = [shard for shard in successors if self.holdings.epoch(shard) is not None]
        async with asyncio.TaskGroup() as group:
            for shard in mine:
                group.create_task(give(shard))

    async def _released(self, shard: int) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_RELEASE_S):
                await self._release(shard)

    def _successors(self, shards: Iterable[int]) -> dict[int, WorkerRow]:
        up, me = self._members.up, self.life.row.worker
        if self._others is None or self._others[0] is not up:  # ranks of all shards take a while
            self._others = up, self._members.without(me)
        placement = self._others[1]
        ranks = {shard: placement.ranked(shard) for shard in shards}
        return {shard: up[workers[0]] for shard, workers in ranks.items() if workers}

    async def _while(self, work: Coroutine[Any, Any, None], condition: Callable[[], bool]) -> None:
        """Work to the end, or until the condition does not hold any more."""
        working = asyncio.ensure_future(work)
        try:
            while not working.done() and condition():
                pause = asyncio.ensure_future(self._clock.sleep(_LOOK_S))
                await asyncio.wait((working, pause), return_when=asyncio.FIRST_COMPLETED)
                pause.cancel()
            if working.done():
                working.result()
        finally:
            working.cancel()

    def notice(self, shards: Iterable[int]) -> None:
        self._noticed.update(shards)
        self._woken.set()

    def look(self) -> None:
        self._polled.set()

    def _renewed(self) -> None:
        if self._has_lapsed:
            self._has_lapsed = False
            # Whoever starts together with others sees them before it takes anything.
            self._settled_at = self._clock.now() + 2 * self._setup.poll_s * (1 + self._setup.random())
            self._agenda.news(self._settled_at)
            self._woken.set()

    async def _guard_right(self) -> None:
        """Drop everything shortly before the right runs out, so that all that acts on it has ended by then."""
        while True:
            left_s = self.life.right.left_s(self._clock.now())
            if left_s <= 0:
                self._has_lapsed = True
                self._noticed.update(self.holdings)
                self.holdings.lapse()
            await self._clock.sleep(max(left_s, _LOOK_S))

    async def _poll(self) -> None:
        is_well = True
        while True:
            try:
                if await self._members.poll():
                    self._agenda.news(max(self._clock.now(), self._settled_at))
                    self._woken.set()
                await self._balance()
                if not is_well:
                    _logger.info("the lease table answers again")
                is_well = True
            except TableError as error:
                if is_well:
                    _logger.warning("the lease table does not answer, so shards will be let go of: %s", error)
                is_well = False
            self._polled.clear()
            wait_s = self._setup.poll_s * (1 + _SPREAD * (2 * self._setup.random() - 1))
            await _wait(self._polled, self._clock, min(wait_s, max(_SOON_S, self._members.patience_s())))

    async def _sweep(self) -> None:
        while True:
            await _wait(self._woken, self._clock, self._agenda.wait_s(self._clock.now()))
            if not self.life.may_act():
                await self._clock.sleep(_LOOK_S)
                continue
            self._woken.clear()
            shards = self._due()
            try:
                is_unclear = await self._sweeper.sweep(shards)
            except TableError:
                is_unclear = True
                self._noticed |= shards
            if is_unclear:
                self._agenda.look_again(self._clock.now())

    def _due(self) -> set[int]:
        me, placement = self.life.row.worker, self._members.placement
        shards, self._noticed = self._noticed, set()
        tasks = self._agenda.take_due(self._clock.now())
        if "mine" in tasks:
            shards |= self._sweeper.mine
        if "first" in tasks or "mine" in tasks:
            shards.update(placement.at_rank(me, 0))
        if "second" in tasks or "mine" in tasks:
            shards.update(placement.at_rank(me, 1))
        return shards

    async def _balance(self) -> None:
        """Hand a few shards to who ranks first for them, if the others have been the same for a while."""
        me, now = self.life.row, self._clock.now()
        settled_s = _RESIDENCE * me.lease_ms / 1_000
        if now - self._members.since < settled_s or me.worker not in self._members.up:
            return
        up, placement = self._members.up, self._members.placement
        moving: dict[int, WorkerRow] = {}
        for shard in self.holdings:
            since, first = self.holdings.since(shard), placement.ranked(shard)[0]
            if first != me.worker and since is not None and now - since >= settled_s and len(moving) < _PACE:
                moving[shard] = up[first]
        await self._give(moving)

    async def _say(self, state: WorkerState) -> None:
        write = set_state(self.life.fleet, self.life.row.worker, self.life.row.inc, state)
        await until_known(self.life.table, self._clock, write)


async def _wait(event: asyncio.Event, clock: Clock, seconds: float) -> None:
    """For the event, or for so long."""
    waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(event.wait())]
    if seconds != inf:
        waits.append(asyncio.ensure_future(clock.sleep(seconds)))
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
