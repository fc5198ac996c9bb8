"""A worker that serves an app, real sockets and the real owner, in the loop of the test.

    async with serving(Board()) as worker:
        async with worker.open(3) as client: ...

Rules: a fleet has eight shards, so that each is soon owned; `id_in` names a connection of one. A test plays the
gateway: it writes the stamps itself. Beats run in the test's loop, ten of them in a lease, which is a long one, as
cores are shared.
"""

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any
from uuid import uuid4

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from herdgate.asgi import Receive, Scope, Send
from herdgate_gateway.leases.acts import Write
from herdgate_gateway.leases.beat import Beats
from herdgate_gateway.leases.clocks import BootClock
from herdgate_gateway.leases.conditions import ABSENT
from herdgate_gateway.leases.memory import MemoryLeases
from herdgate_gateway.leases.notices import Notices
from herdgate_gateway.leases.owner import Setup, ShardOwner
from herdgate_gateway.leases.rows import (
    ConnectionRow,
    Item,
    ShardRow,
    WorkerRow,
    connection_key,
    shard_key,
    shard_of,
    worker_key,
)
from herdgate_gateway.leases.table import Done, LeaseTable, Outcome, TableError, Unknown
from herdgate_gateway.worker_kit.serving import Serving
from herdgate_gateway.worker_kit.worker import Worker
from tests.herdgate_gateway.leases.puts import ANYHOW
from tests.wire import Answer, Pairs, eventually, knock, open_socket

__all__ = [
    "FLEET",
    "OTHER",
    "SHARDS",
    "Board",
    "Peer",
    "Table",
    "Working",
    "closed",
    "id_in",
    "lose",
    "serving",
    "stamp",
    "until",
]

FLEET, SHARDS = "f", 8

OTHER = WorkerRow("other", "other.1", None, "UP", 1, 3_000, "ws://127.0.0.1:1", 1, 0)
"""Another worker of the table, which does not run."""


def id_in(shard: int) -> str:
    """A connection that belongs to it."""
    return next(name for name in map(str, count()) if shard_of(name) == shard)


def stamp(shard: int, epoch: int, connection_id: str | None = None, duplicates: str | None = None) -> Pairs:
    """What a gateway says of a handshake."""
    name = id_in(shard) if connection_id is None else connection_id
    more = [] if duplicates is None else [("Herdgate-Duplicates", duplicates)]
    return [
        *more,
        ("Herdgate-Gateway", "0123456789abcdef"),
        ("Herdgate-Connection-Id", name),
        ("Herdgate-Shard", str(shard)),
        ("Herdgate-Epoch", str(epoch)),
    ]


async def until(holds: Callable[[], bool], what: str, *, within_s: float = 10.0) -> None:
    """Wait for it."""

    async def ask() -> bool:
        return holds()

    await eventually(ask, what, within_s=within_s)


async def _read(client: Any) -> None:
    while True:
        await client.recv()


async def closed(client: Any) -> tuple[int, str]:
    """How the worker closes this socket; what it sends before is read."""
    with pytest.raises(ConnectionClosed) as ended:
        await asyncio.wait_for(_read(client), 10)
    frame = ended.value.rcvd
    assert frame is not None, "no close frame"
    return frame.code, frame.reason


class Table(MemoryLeases):
    """A table that can be away, and forget to answer.

    Attributes:
        is_away: nothing is answered.
        holds: while it returns True for a write, that is not carried out, and nobody knows of it.
        written: what was sent to it.
        strong_reads: rows that were read one at a time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_away = False
        self.holds: Callable[[Write], bool] = lambda write: False
        self.written: list[Write] = []
        self.reads_hang = False
        self.strong_reads = 0

    async def write(self, write: Write) -> Outcome:
        self.written.append(write)
        if self.is_away or self.holds(write):
            return Unknown("it is away")
        return await super().write(write)

    async def read_many(self, keys: Any, *, strong: bool) -> Any:
        self.strong_reads += strong and len(keys) == 1 and next(iter(keys)).sk == "@"
        if self.reads_hang:
            await asyncio.sleep(60)
        if self.is_away:
            raise TableError("it is away")
        return await super().read_many(keys, strong=strong)

    async def own(self, shard: int, owner: WorkerRow, epoch: int) -> None:
        """A shard as it is after somebody has taken it."""
        sets = {"owner": owner.worker, "inc": owner.inc, "addr": owner.addr, "epoch": epoch}
        assert isinstance(await MemoryLeases.write(self, Write(shard_key(FLEET, shard), ANYHOW, sets)), Done)

    async def shard(self, shard: int) -> ShardRow:
        """Its row."""
        item = (await MemoryLeases.read_many(self, [shard_key(FLEET, shard)], strong=True))[shard_key(FLEET, shard)]
        return ShardRow.of(item)

    async def worker(self, name: str) -> WorkerRow | None:
        """Its row."""
        item = (await MemoryLeases.read_many(self, [worker_key(FLEET, name)], strong=True)).get(worker_key(FLEET, name))
        return None if item is None else WorkerRow.of(item)

    async def make_connection(self, name: str, **attributes: int) -> None:
        """A row that wants to run."""
        item = {"want": "STARTED", **attributes}
        assert isinstance(await MemoryLeases.write(self, Write(connection_key(FLEET, name), ABSENT, item)), Done)

    async def connection(self, name: str) -> ConnectionRow | None:
        """Its row."""
        key = connection_key(FLEET, name)
        item: Item | None = (await MemoryLeases.read_many(self, [key], strong=True)).get(key)
        return None if item is None else ConnectionRow.of(item)


class Board:
    """An app that says of each socket what it is, echoes, and remembers how it ended.

    Attributes:
        states: of the scopes, by connection id.
        ends: what `receive` gave last, by connection id.
        raised: by what a `send` after the end was refused, by connection id.
    """

    def __init__(self) -> None:
        self.states: dict[str, Any] = {}
        self.ends: dict[str, Any] = {}
        self.raised: dict[str, BaseException] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": str(sorted(scope.get("state", {}))).encode()})
        elif scope["type"] == "websocket":
            await self._talk(scope["state"], receive, send)

    async def _talk(self, state: Any, receive: Receive, send: Send) -> None:
        name = state["connection"].id
        self.states[name] = state
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})
        self.ends[name] = message
        try:
            await send({"type": "websocket.send", "text": "too late"})
        except Exception as error:
            self.raised[name] = error
            raise


class Working:
    """A running one.

    Attributes:
        duty: what it does.
        table: that it uses.
    """

    def __init__(self, table: Table, port: int, name: str) -> None:
        self.table, self.port, self.name = table, port, name
        self.worker: Worker
        self.duty: Serving
        self.running: asyncio.Future[None]

    @property
    def owner(self) -> ShardOwner:
        return self.worker.owner

    @property
    def row(self) -> WorkerRow:
        """Of its present life."""
        assert self.owner.life is not None
        return self.owner.life.row

    def epoch(self, shard: int) -> int:
        """As it stands here."""
        epoch = self.owner.epoch(shard)
        assert epoch is not None, f"shard {shard} is not held"
        return epoch

    def open(
        self,
        shard: int,
        epoch: int | None = None,
        connection_id: str | None = None,
        duplicates: str | None = None,
        **options: Any,
    ) -> connect:
        """A socket with the right stamp, or with another epoch."""
        stamped = self.epoch(shard) if epoch is None else epoch
        return open_socket(self.port, "/", headers=stamp(shard, stamped, connection_id, duplicates), **options)

    async def knock(
        self, shard: int, epoch: int, connection_id: str | None = None, duplicates: str | None = None
    ) -> Answer:
        """The answer to a handshake with this stamp."""
        return await knock(self.port, "/", headers=stamp(shard, epoch, connection_id, duplicates))


async def lose(worker: Working, shard: int) -> None:
    """Somebody else has it, and the worker finds out."""
    await worker.table.own(shard, OTHER, 50)
    await worker.owner.adopt(shard)
    assert worker.owner.epoch(shard) is None


class Peer:
    """Makes the setup of a worker.

    Args:
        lease_s: seconds.
        carry: takes news to an owner where there is no Redis.
    """

    def __init__(
        self,
        table: LeaseTable,
        name: str,
        addr: str,
        *,
        lease_s: float,
        carry: Callable[[WorkerRow, int], None],
    ) -> None:
        self._table, self._lease_s, self._carry = table, lease_s, carry
        self._row = WorkerRow(name, "", None, "UP", 0, int(lease_s * 1_000), addr, 100, 0)

    def setup(self, load: Callable[[], int]) -> Setup:
        """For `Worker`."""
        return Setup(
            self._table,
            BootClock(),
            FLEET,
            self._row,
            lambda life: Beats(life, beat_s=self._lease_s / 10, load=load, is_awake=lambda: True),
            lambda: uuid4().hex,
            random.random,
            self._carry,
            poll_s=0.05,
            shards=SHARDS,
        )


@asynccontextmanager
async def serving(
    app: Any,
    *,
    table: Table | None = None,
    name: str = "w",
    capacity: int = 100,
    lease_s: float = 5.0,
    stop_s: float = 10.0,
    rate: float | None = None,
    redis: str | None = None,
    notices: Notices | None = None,
    carry: Callable[[WorkerRow, int], None] = lambda row, shard: None,
    waits: bool = True,
) -> AsyncIterator[Working]:
    """One worker, alone until others come, that has all shards it can get."""
    table = table or Table()
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    listener.setblocking(False)
    port = listener.getsockname()[1]
    addr, working = f"ws://127.0.0.1:{port}", Working(table, port, name)

    def duty(parts: Any) -> Serving:
        working.duty = Serving(parts, app, listeners=[listener], capacity=capacity, addr=addr, redis=redis)
        return working.duty

    async def tell_rate() -> float | None:
        return rate

    peer = Peer(table, name, addr, lease_s=lease_s, carry=carry if notices is None else notices.tell)
    working.worker = Worker(peer.setup, duty, notices, tell_rate, stop_s)
    working.running = asyncio.ensure_future(working.worker.run())
    try:
        if waits:
            await until(lambda: working.running.done() or len(working.owner.held) == SHARDS, "it has all shards")
        yield working
    finally:
        table.is_away = table.reads_hang = False
        table.holds = lambda write: False
        if not working.running.done():
            stopping = asyncio.ensure_future(working.worker.stop())
            await asyncio.sleep(0)
            await working.worker.stop()
            await stopping
        with suppress(Exception):
            await asyncio.wait_for(working.running, 20)
