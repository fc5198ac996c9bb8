"""Workers of the real code on virtual time.

Node    one worker: its machine, its clock, its link, its `ShardOwner`, and what that one was told
Fleet   the table, the nodes, and the news between them
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from itertools import count
from typing import Any, Literal, NamedTuple, ParamSpec

from herdgate_gateway.leases.acts import Write, beat, fence_child
from herdgate_gateway.leases.beat import Beats
from herdgate_gateway.leases.conditions import ABSENT
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.memory import MemoryLeases
from herdgate_gateway.leases.owner import Setup, ShardOwner
from herdgate_gateway.leases.registration import begin
from herdgate_gateway.leases.rights import Right
from herdgate_gateway.leases.rows import (
    ConnectionRow,
    ShardRow,
    WorkerRow,
    connection_key,
    shard_key,
    shard_of,
    worker_key,
)
from herdgate_gateway.leases.table import Done
from tests.herdgate_gateway.leases.links import Link, moment
from tests.herdgate_gateway.leases.puts import ANYHOW
from tests.herdgate_gateway.leases.simulation.machines import Faults, Machine
from tests.herdgate_gateway.leases.simulation.oracle import Oracle
from tests.herdgate_gateway.leases.simulation.virtual import run_virtually

__all__ = ["FLEET", "Fleet", "Node", "Told", "after", "beat_once", "until", "virtually"]

FLEET = "f"
P = ParamSpec("P")


def virtually(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test on virtual time."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        run_virtually(test(*args, **kwargs))

    return run


async def until(holds: Callable[[], bool], what: str, *, within_s: float) -> float:
    """Wait for something, and say at which moment it was there."""
    end = moment() + within_s
    while not holds():
        assert moment() < end, f"not within {within_s} s: {what}"
        await asyncio.sleep(0.01)
    return moment()


async def after(seconds: float, act: Callable[[], Awaitable[Any]]) -> None:
    """Do something then."""
    await asyncio.sleep(seconds)
    await act()


class Told(NamedTuple):
    """What a worker was told of its shards."""

    at: float
    what: Literal["gained", "lost"]
    shard: int
    epoch: int


class Node:
    """One worker of a fleet.

    Args:
        offset_s: what its clock shows at the beginning.
        pace: of its clock; 1.0 is exact.

    Attributes:
        faults: of all its requests; `away` cuts it off.
        incs: of its lives, in order.
        told: in order.
    """

    def __init__(self, fleet: "Fleet", name: str, *, offset_s: float, pace: float, capacity: int) -> None:
        self.name, self._fleet = name, fleet
        self.faults = Faults(random.Random(name))
        self.machine = Machine(name, fleet.oracle, self.faults, offset_s=offset_s, pace=pace)
        self.link = Link(self.machine, fleet.oracle)
        self.row = WorkerRow(name, "", None, "UP", 0, fleet.lease_ms, f"ws://{name}", capacity, 0)
        self.owner: ShardOwner | None = None
        self.incs: list[str] = []
        self.told: list[Told] = []
        self.is_awake = True

    @property
    def held(self) -> set[int]:
        """What it may act on at this moment."""
        return set() if self.owner is None else {s for s in self.owner.held if self.owner.epoch(s) is not None}

    @property
    def inc(self) -> str:
        """Its latest life."""
        return self.incs[-1]

    def start(self, *, generation: int = 0) -> ShardOwner:
        """Run the real thing."""
        setup = Setup(
            self.link,
            self.machine,
            FLEET,
            self.row,
            self.beats,
            self.new_inc,
            self._fleet.rng.random,
            self._fleet.tell,
            shards=self._fleet.shards,
            generation=generation,
        )
        self.owner = ShardOwner(setup, self._say("gained"), self._say("lost"))
        self.machine.start(self.owner.run())
        return self.owner

    async def kill(self) -> None:
        """SIGKILL, and nobody has seen it."""
        await self.machine.crash()
        self.owner = None

    async def begin(self) -> Life:
        """Only register, with the real thing: there is no right yet."""
        row = await begin(self.link, self.machine, FLEET, self.row, self.new_inc)
        return Life(self.link, self.machine, FLEET, row, Right(row.lease_ms / 1_000))

    def beats(self, life: Life) -> Beats:
        """Not running yet."""
        return Beats(life, beat_s=1.0, load=lambda: 0, is_awake=lambda: self.is_awake)

    async def live(self) -> Life:
        """Register, and beat once."""
        life = await self.begin()
        await beat_once(life)
        return life

    def new_inc(self) -> str:
        """Never the same twice in this fleet."""
        self.incs.append(f"{self.name}.{next(self._fleet.numbers)}")
        self._fleet.by_inc[self.inc] = self
        return self.inc

    def _say(self, what: Literal["gained", "lost"]) -> Callable[[int, int], None]:
        def say(shard: int, epoch: int) -> None:
            self.told.append(Told(moment(), what, shard, epoch))
            if what == "gained" and self._fleet.owned()[shard] > 1:
                self._fleet.oracle.violations.append(f"shard {shard}: {self.name} and another one own it")

        return say


async def beat_once(life: Life) -> None:
    """Renew a right."""
    sent_at = life.clock.now()
    assert isinstance(await life.table.write(beat(life.fleet, life.row.worker, life.row.inc, 0)), Done)
    life.right.renew(sent_at)


class Fleet:
    """The table and who uses it.

    Attributes:
        news: every piece of news that was sent: the life it is for, and the shard.
        carries_news: False: it is lost.
    """

    def __init__(self, *, shards: int = 6, lease_ms: int = 3_000, seed: int = 1) -> None:
        self.shards, self.lease_ms = shards, lease_ms
        self.rng = random.Random(seed)
        self.oracle = Oracle()
        self.oracle.has_right = self._has_right
        self.nodes: dict[str, Node] = {}
        self.by_inc: dict[str, Node] = {}
        self.numbers = count(1)
        self.news: list[tuple[str, int]] = []
        self.carries_news = True

    @property
    def table(self) -> MemoryLeases:
        """Without any link."""
        return self.oracle.table

    async def declare_dead(self, worker: str, inc: str) -> None:
        """As its guardian does."""
        assert isinstance(await self.table.write(fence_child(FLEET, worker, inc)), Done)

    async def own(self, shard: int, owner: WorkerRow, epoch: int = 1) -> ShardRow:
        """A shard as it is after somebody has taken it."""
        row = ShardRow(shard, owner.worker, owner.inc, owner.addr, epoch)
        ownership = {"owner": row.owner, "inc": row.inc, "addr": row.addr, "epoch": row.epoch}
        assert isinstance(await self.oracle.write(Write(shard_key(FLEET, shard), ANYHOW, ownership)), Done)
        return row

    async def connect(self, shard: int, **attributes: int) -> str:
        """Make a connection that belongs to a shard, and say which one it is."""
        name = next(name for name in map(str, count()) if shard_of(name) == shard)
        item = {"want": "STARTED", **attributes}
        assert isinstance(await self.table.write(Write(connection_key(FLEET, name), ABSENT, item)), Done)
        return name

    async def connection(self, name: str) -> ConnectionRow:
        """Its row."""
        item = await self.table.read(connection_key(FLEET, name), strong=True)
        assert item is not None
        return ConnectionRow.of(item)

    def node(self, name: str, *, offset_s: float = 0.0, pace: float = 1.0, capacity: int = 100) -> Node:
        """A new process of this name, not started."""
        self.nodes[name] = Node(self, name, offset_s=offset_s, pace=pace, capacity=capacity)
        return self.nodes[name]

    async def shard(self, shard: int) -> ShardRow | None:
        """Its row."""
        item = await self.table.read(shard_key(FLEET, shard), strong=True)
        return None if item is None else ShardRow.of(item)

    async def worker(self, name: str) -> WorkerRow | None:
        """Its row."""
        item = await self.table.read(worker_key(FLEET, name), strong=True)
        return None if item is None else WorkerRow.of(item)

    def owned(self) -> Counter[int]:
        """By how many each shard may be acted on at this moment."""
        return Counter(shard for node in self.nodes.values() for shard in node.held)

    def is_settled(self) -> bool:
        """Each shard has exactly one owner who knows it."""
        return self.owned() == Counter(range(self.shards))

    def tell(self, row: WorkerRow, shard: int) -> None:
        """As `handover.Tell`."""
        self.news.append((row.inc, shard))
        node = self.by_inc.get(row.inc)
        if self.carries_news and node is not None and node.owner is not None:
            asyncio.get_running_loop().call_later(0.01, node.owner.notice, [shard])

    def _has_right(self, inc: str) -> bool:
        node = self.by_inc.get(inc)
        life = node.owner.life if node is not None and node.owner is not None else None
        return life is not None and life.row.inc == inc and life.may_act()
