"""A worker that owns shards: lives one life after the other, until it is stopped.

    begin -> beats renew the right -> polls see the others, sweeps find shards -> hold them
          -> the right runs out    : drop all, go on; what is still mine is found again when beats come through
          -> a beat is refused     : this life is over, begin another
          -> stop                  : say so, give everything away, be dead

Everything runs in one loop but the beats, which may have a thread of their own.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

from herdgate_gateway.leases.acts import set_state
from herdgate_gateway.leases.agenda import Agenda
from herdgate_gateway.leases.certainty import until_known
from herdgate_gateway.leases.clocks import Clock
from herdgate_gateway.leases.effects import Effects
from herdgate_gateway.leases.handover import Tell, give_away
from herdgate_gateway.leases.holdings import Holdings
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.members import Members
from herdgate_gateway.leases.registration import begin
from herdgate_gateway.leases.rights import Right
from herdgate_gateway.leases.rows import SHARDS, WorkerRow, WorkerState
from herdgate_gateway.leases.sweep import Sweeper
from herdgate_gateway.leases.table import LeaseTable, TableError
from herdgate_gateway.leases.watching import Watch

__all__ = ["Beating", "Setup", "ShardOwner"]

_LOOK_S, _SOON_S = 0.1, 0.02
_SPREAD = 0.1  # of the time between two polls
_PACE = 16  # shards handed over to a joiner by one poll
_RESIDENCE = 2  # leases that a shard stays, and that the workers have to be the same, before it is handed over
_logger = logging.getLogger("herdgate.leases")


class Beating(Protocol):
    """As `beat.Beats`."""

    @property
    def trouble_at(self) -> float | None:
        """When one failed or was late last."""
        ...

    async def run(self, renewed: Callable[[], None], lost: Callable[[], None]) -> None:
        """Beat until this life is over, or cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker is to the others, and what it has to work with.

    Attributes:
        row: name, address, capacity and lease; the rest of it is not looked at.
        beats: makes the beats of a life.
        new_inc: never the same twice, anywhere.
        random: uniform numbers in [0, 1).
        tell: where news is carried to another worker.
        poll_s: seconds between two looks at the others.
        shards: of the fleet.
        generation: see `acts.epoch_after`.
    """

    table: LeaseTable
    clock: Clock
    fleet: str
    row: WorkerRow
    beats: Callable[[Life], Beating]
    new_inc: Callable[[], str]
    random: Callable[[], float]
    tell: Tell
    poll_s: float = 0.5
    shards: int = SHARDS
    generation: int = 0


class ShardOwner:
    """See above.

    Args:
        gained: told of a shard and its epoch when it may be acted on.
        lost: told when it may not any more.
    """

    def __init__(self, setup: Setup, gained: Callable[[int, int], None], lost: Callable[[int, int], None]) -> None:
        self._setup = setup
        self._gained, self._lost = gained, lost
        self._watch = Watch(setup.row.lease_ms / 1_000)
        self._present: _Present | None = None
        self._asked_to_stop, self._has_left = asyncio.Event(), asyncio.Event()

    @property
    def is_stopping(self) -> bool:
        """True once `stop` was called."""
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
            self._present = _Present(setup, life, self._watch, Holdings(self._gained, self._lost))
            try:
                await self._present.live()
            finally:
                self._present = None
        await self._has_left.wait()

    async def stop(self) -> None:
        """Give everything away and be dead, then `run` returns; only the first call does.

        It ends when the right does, whatever the table says. Cancelled, it leaves the rest to the others to notice.
        """
        if self.is_stopping:
            return
        self._asked_to_stop.set()
        try:
            if self._present is not None:
                await self._present.leave()
        finally:
            self._has_left.set()

    async def _begin(self) -> WorkerRow | None:
        """The row of a life that has begun; None: there shall be none."""
        setup = self._setup
        beginning = asyncio.ensure_future(begin(setup.table, setup.clock, setup.fleet, setup.row, setup.new_inc))
        asked = asyncio.ensure_future(self._asked_to_stop.wait())
        try:
            await asyncio.wait((beginning, asked), return_when=asyncio.FIRST_COMPLETED)
            return None if self.is_stopping else beginning.result()
        finally:
            beginning.cancel()  # a row that is written all the same never beats
            asked.cancel()


class _Present:
    """The present life and all that goes on in it."""

    def __init__(self, setup: Setup, life: Life, watch: Watch, holdings: Holdings) -> None:
        self.life, self.holdings = life, holdings
        self._setup, self._clock = setup, life.clock
        self._beats = setup.beats(life)
        self._members = Members(life, watch, setup.shards, lambda: self._beats.trouble_at)
        self._sweeper = Sweeper(life, holdings, watch, setup.tell, generation=setup.generation)
        self._agenda = Agenda(setup.random)
        self._noticed: set[int] = set()
        self._woken, self._polled = asyncio.Event(), asyncio.Event()
        self._over = asyncio.Event()
        self._looking: list[asyncio.Task[None]] = []
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
        await self._say("DRAINING")
        placement, up = self._members.without(self.life.row.worker), self._members.up
        ranks = {shard: placement.ranked(shard) for shard in self.holdings}
        successors = {shard: up[workers[0]] for shard, workers in ranks.items() if workers}
        await give_away(self.life, self.holdings, successors, self._setup.tell)

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
                    _logger.warning("the lease table answers again")
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
        await give_away(self.life, self.holdings, moving, self._setup.tell)

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
