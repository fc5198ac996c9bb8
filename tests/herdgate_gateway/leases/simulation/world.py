"""A fleet of workers of the real code, on machines that go wrong, for a few minutes of virtual time.

    play(seed) -> faults strike for a while, then stop -> every shard is owned by somebody who knows it

What must never happen is written down by the oracle, and here: two workers that may act on one shard at one moment.
"""

import asyncio
import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from herdgate_gateway.leases.acts import Write, fence_child
from herdgate_gateway.leases.beat import Beats
from herdgate_gateway.leases.conditions import ABSENT
from herdgate_gateway.leases.effects import Claimed, NotOwnerError, UnknownOutcomeError
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.owner import Setup, ShardOwner
from herdgate_gateway.leases.registration import NameInUseError
from herdgate_gateway.leases.rows import ShardRow, WorkerRow, connection_key, shard_key, shard_of
from tests.herdgate_gateway.leases.simulation.machines import Faults, Machine
from tests.herdgate_gateway.leases.simulation.oracle import Oracle

__all__ = ["SHARDS", "Story", "World"]

FLEET = "sim"
SHARDS = 6
LEASE_MS = 3_000
FAULTS_S = 45.0
CALM_S = 70.0  # news may be lost: then the regular sweep finds what is mine, after 66 s at most
CONNECTIONS = [name for name in map(str, range(4_000)) if shard_of(name) < SHARDS][:12]
_DRIFT = 0.0005
_OFFSET_S = 30.0


@dataclass(slots=True)
class Story:
    """What came of one seed.

    Attributes:
        violations: what must never happen and did.
        homeless: shards that nobody who knows it owns in the end.
        log: what was done to the fleet, with the moment.
    """

    seed: int
    violations: list[str] = field(default_factory=list)
    homeless: list[int] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    effects: int = 0
    deaths: int = 0


class _Worker:
    """One name: its machine, and the process on it."""

    def __init__(self, name: str, world: "World") -> None:
        self.name, self._world, rng = name, world, world.rng
        pace, offset_s = 1 + rng.uniform(-_DRIFT, _DRIFT), rng.uniform(0, 2 * _OFFSET_S)
        self.machine = Machine(name, world.oracle, world.faults, offset_s=offset_s, pace=pace)
        self.owner: ShardOwner | None = None
        self.lives: set[str] = set()
        self.serving: set[int] = set()

    def start(self) -> None:
        row = WorkerRow(self.name, "", None, "UP", 0, LEASE_MS, f"ws://{self.name}", 100, 0)
        machine, rng = self.machine, self._world.rng
        setup = Setup(
            machine,
            machine,
            FLEET,
            row,
            self._beats,
            self._new_inc,
            rng.random,
            self._world.tell,
            shards=SHARDS,
        )
        self.serving.clear()
        self.owner = ShardOwner(setup, self._gained, lambda shard, epoch: self.serving.discard(shard))
        machine.start(self._run(self.owner))
        machine.start(self._act(self.owner))

    async def _run(self, owner: ShardOwner) -> None:
        try:
            await owner.run()
        except NameInUseError:  # late beats of a life before look like it; whoever started it starts it again
            await self.machine.sleep(1.0)
            await self._run(owner)

    async def crash(self, *, guarded: bool) -> None:
        await self.machine.crash()
        self.owner, lives, self.lives = None, self.lives, set()
        self.serving.clear()
        for inc in lives if guarded else ():
            await self.machine.write(fence_child(FLEET, self.name, inc))
        if guarded:
            self._world.spread_news()

    def hear(self, shards: Iterable[int] = ()) -> None:
        """News: of these shards, or of a worker."""
        if self.owner is not None:
            self.owner.notice(shards)
            self.owner.news()

    def _new_inc(self) -> str:
        inc = f"{self.name}.{next(self._world.numbers)}"
        self.lives.add(inc)
        self._world.by_inc[inc] = self
        return inc

    def _beats(self, life: Life) -> Beats:
        return Beats(life, beat_s=1.0, load=lambda: 0, is_awake=lambda: True)

    def _gained(self, shard: int, epoch: int) -> None:
        self.serving.add(shard)
        for other in self._world.workers:
            if other is not self and other.serves(shard):
                self._world.oracle.violations.append(f"shard {shard}: {self.name} and {other.name} own it")

    def serves(self, shard: int) -> bool:
        """True if it was told that it owns it, and nothing else since; who stands still serves nobody."""
        may_act = self.owner is not None and self.owner.epoch(shard) is not None
        return may_act or (shard in self.serving and self.machine.is_going)

    async def _act(self, owner: ShardOwner) -> None:
        """Serve the connections of the shards it has."""
        rng, claimed = self._world.rng, dict[str, Claimed]()
        for number in itertools.count(1):
            await self.machine.sleep(rng.uniform(0.1, 1.0))
            name, effects = rng.choice(self._world.connections), owner.effects
            if effects is None:
                claimed.clear()
                continue
            try:
                mine = claimed.get(name)
                if mine is None or mine.epoch != owner.epoch(shard_of(name) % SHARDS):
                    claimed[name] = await effects.claim(name)
                else:
                    await effects.checkpoint(name, mine.epoch, number)
            except (NotOwnerError, UnknownOutcomeError):
                claimed.pop(name, None)


class World:
    """One fleet, from one seed.

    Args:
        size: workers.
    """

    def __init__(self, seed: int, size: int = 3) -> None:
        self.rng = random.Random(seed)
        self.story = Story(seed)
        self.oracle, self.faults = Oracle(), Faults(self.rng)
        self.numbers = itertools.count(1)
        self.by_inc: dict[str, _Worker] = {}
        self.connections = CONNECTIONS
        self.workers = [_Worker(f"w{number}", self) for number in range(size)]
        self.oracle.has_right = self._has_right
        self._news: set[asyncio.Task[None]] = set()

    async def play(self) -> Story:
        for name in self.connections:
            await self.oracle.write(Write(connection_key(FLEET, name), ABSENT, {"want": "STARTED"}))
        for worker in self.workers:
            worker.start()
        await asyncio.sleep(self.rng.uniform(0, 10))
        await self._go_wrong()
        self._calm_down()
        await asyncio.sleep(CALM_S)
        await self._look_at_end()
        for worker in self.workers:
            await worker.machine.crash()
        return self.story

    def tell(self, row: WorkerRow, shard: int) -> None:
        """Carry news to a worker, soon, late or never."""
        worker = self.by_inc.get(row.inc)
        if worker is not None and self.rng.random() > 2 * self.faults.share:
            self._soon(lambda: worker.hear([shard]))

    def spread_news(self) -> None:
        for worker in self.workers:
            if self.rng.random() > 2 * self.faults.share:
                self._soon(worker.hear)

    def _soon(self, act: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(self.rng.uniform(0.001, 0.05), act)

    async def _go_wrong(self) -> None:
        loop, rng = asyncio.get_running_loop(), self.rng
        end = loop.time() + FAULTS_S
        self.faults.share, most_s = rng.choice([0.0, 0.02, 0.1, 0.3]), rng.choice([1.0, 6.0, 12.0])
        while loop.time() < end:
            act = rng.choice([self._pause, self._crash, self._outage, self._restart, self._leave, self._lose_row])
            await act(rng.choice(self.workers))
            await asyncio.sleep(rng.uniform(0, most_s))

    async def _pause(self, worker: _Worker) -> None:
        self._say(f"{worker.name} stands still")
        worker.machine.stand_still()
        await asyncio.sleep(self.rng.choice([0.5, 2.5, 3.2, 10.0]) * self.rng.uniform(0.8, 1.2))
        worker.machine.go_on()

    async def _crash(self, worker: _Worker) -> None:
        guarded = self.rng.random() < 0.5
        self._say(f"{worker.name} crashes, {'guarded' if guarded else 'alone'}")
        await worker.crash(guarded=guarded)

    async def _restart(self, worker: _Worker) -> None:
        self._say(f"{worker.name} is restarted")
        await worker.crash(guarded=self.rng.random() < 0.5)
        await asyncio.sleep(self.rng.choice([0.0, 1.0, 5.0]))
        worker.start()

    async def _leave(self, worker: _Worker) -> None:
        if worker.owner is not None:
            self._say(f"{worker.name} leaves")
            worker.machine.start(worker.owner.stop())

    async def _outage(self, worker: _Worker) -> None:
        self._say("the table is away")
        self.faults.away = True
        await asyncio.sleep(self.rng.choice([0.3, 2.0, 5.0]))
        self.faults.away = False

    async def _lose_row(self, worker: _Worker) -> None:
        if self.rng.random() < 0.3:
            self._say(f"the row of {worker.name} is gone")
            self.oracle.lose_worker(FLEET, worker.name)

    def _calm_down(self) -> None:
        self._say("calm")
        self.faults.share, self.faults.away = 0.0, False
        for worker in self.workers:
            worker.machine.go_on()
        if all(worker.owner is None or worker.owner.is_stopping for worker in self.workers):
            self.workers[0].owner = None
        for worker in self.workers:
            if worker.owner is None:
                worker.start()

    async def _look_at_end(self) -> None:
        for shard in range(SHARDS):
            item = await self.oracle.table.read(shard_key(FLEET, shard), strong=True)
            row = ShardRow.of(item) if item is not None else None
            worker = self.by_inc.get(row.inc) if row is not None else None
            owner = worker.owner if worker is not None else None
            if row is None or owner is None or owner.epoch(shard) != row.epoch:
                self.story.homeless.append(shard)
        self.story.violations = self.oracle.violations
        self.story.effects, self.story.deaths = self.oracle.effects, self.oracle.deaths

    def _has_right(self, inc: str) -> bool:
        worker = self.by_inc.get(inc)
        life = worker.owner.life if worker is not None and worker.owner is not None else None
        return life is not None and life.row.inc == inc and life.may_act()

    def _say(self, what: str) -> None:
        self.story.log.append(f"{asyncio.get_running_loop().time():.2f} {what}")
