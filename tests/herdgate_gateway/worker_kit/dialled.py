"""Workers that dial out on virtual time: the real `Dialling` and the real leases, on a table in memory.

Diary      a handler that writes down what happens to it
Solo       a `Dialling` whose shards a test gives and takes
Dialler    a whole worker: its `ShardOwner`, and a `Dialling`
"""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from herdgate_gateway.leases.acts import want_started, want_stopped
from herdgate_gateway.leases.effects import Effects
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.owner import Setup, ShardOwner
from herdgate_gateway.leases.rows import ShardRow
from herdgate_gateway.leases.table import Done
from herdgate_gateway.worker_kit.dialling import Dialling
from herdgate_gateway.worker_kit.duty import Parts
from herdgate_gateway.worker_kit.handlers import Connection, Handler
from tests.herdgate_gateway.leases.fleet import FLEET, Fleet
from tests.herdgate_gateway.leases.links import moment

__all__ = ["Dialler", "Diary", "Line", "Solo", "start", "stop"]

ALWAYS_S = 1e9


class Line(NamedTuple):
    """What happened to a handler."""

    at: float
    what: str
    id: str
    epoch: int
    worker: str


class Diary:
    """What happens to handlers.

    Attributes:
        lines: in their order; `begin`, `on` twenty times a second, `end` when it is cancelled.
        connections: what the handlers were called with.
    """

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.connections: list[Connection] = []

    def handler(self, worker: str = "w") -> Handler:
        """One that runs until it is cancelled."""

        async def handle(connection: Connection) -> None:
            self.connections.append(connection)
            self.note("begin", connection, worker)
            try:
                while True:
                    await asyncio.sleep(0.05)
                    self.note("on", connection, worker)
            finally:
                self.note("end", connection, worker)

        return handle

    def note(self, what: str, connection: Connection, worker: str = "w") -> None:
        """A line."""
        self.lines.append(Line(moment(), what, connection.id, connection.epoch, worker))

    def count(self, what: str, name: str | None = None) -> int:
        """Lines of this kind, of one connection or all."""
        return sum(line.what == what and name in (None, line.id) for line in self.lines)

    def running(self) -> list[str]:
        """Connections that have begun and not ended, once for each time."""
        begun = [line.id for line in self.lines if line.what == "begin"]
        for line in self.lines:
            if line.what == "end":
                begun.remove(line.id)
        return sorted(begun)


async def start(fleet: Fleet, name: str, attrs: Mapping[str, Any] | None = None) -> None:
    """Have it run; nobody is told."""
    assert isinstance(await fleet.table.write(want_started(FLEET, name, attrs)), Done)


async def stop(fleet: Fleet, name: str) -> None:
    """Have it not run; nobody is told."""
    assert isinstance(await fleet.table.write(want_stopped(FLEET, name, 0)), Done)


class Solo:
    """Made by `Solo.of`.

    Attributes:
        epochs: of the shards that may be acted on. Taken out alone, the right has gone and nobody has noticed yet.
    """

    def __init__(self, fleet: Fleet, life: Life, handler: Handler) -> None:
        self.fleet, self._life = fleet, life
        self.link = fleet.nodes[life.row.worker].link
        self.epochs: dict[int, int] = {}
        parts = Parts(self, self.link, life.clock, FLEET, life.row.worker)
        self.duty = Dialling(parts, handler)
        fleet.nodes[life.row.worker].machine.start(self.duty.run())

    @classmethod
    async def of(cls, handler: Handler) -> "Solo":
        """One whose right never ends by itself."""
        fleet = Fleet()
        life = await fleet.node("w").live()
        life.right.renew(ALWAYS_S)
        return cls(fleet, life, handler)

    def give(self, shard: int, epoch: int = 4) -> None:
        self.epochs[shard] = epoch
        self.duty.gained(shard, epoch)

    def take(self, shard: int) -> None:
        self.duty.lost(shard, self.epochs.pop(shard))

    # As `duty.Owning`.

    def epoch(self, shard: int) -> int | None:
        return self.epochs.get(shard)

    @property
    def life(self) -> Life:
        return self._life

    @property
    def effects(self) -> Effects:
        return Effects(self._life, self.epoch, lambda _shard, _epoch: None)

    async def adopt(self, shard: int) -> ShardRow | None:
        raise AssertionError(f"who dials out is not told of shard {shard} by a gateway")


class Dialler:
    """A whole worker of a fleet, started."""

    def __init__(self, fleet: Fleet, name: str, handler: Handler) -> None:
        self.node = fleet.node(name)
        setup = Setup(
            self.node.link,
            self.node.machine,
            FLEET,
            self.node.row,
            self.node.beats,
            self.node.new_inc,
            fleet.rng.random,
            fleet.tell,
            shards=fleet.shards,
        )
        self.owner = ShardOwner(setup, self._gained, self._lost, self._release)
        self.duty = Dialling(Parts(self.owner, self.node.link, self.node.machine, FLEET, name), handler)
        self.node.owner = self.owner
        self.node.machine.start(self.owner.run())
        self.node.machine.start(self.duty.run())

    async def leave(self) -> None:
        """In good order."""
        await self.owner.stop()

    def _gained(self, shard: int, epoch: int) -> None:
        self.duty.gained(shard, epoch)

    def _lost(self, shard: int, epoch: int) -> None:
        self.duty.lost(shard, epoch)

    async def _release(self, shard: int) -> None:
        await self.duty.release(shard)
