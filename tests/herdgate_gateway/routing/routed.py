"""A gateway with a lease table in memory, in the loop of the test, and workers that look at their stamps.

async with owning_worker() as one, routed() as fleet:
    await fleet.own("room-7", one)
    ... fleet.port, fleet.table, fleet.gateway, one.stamps
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from herdgate.asgi import Receive, Scope, Send
from herdgate_gateway.app import Gateway
from herdgate_gateway.client_leg import client_leg_class
from herdgate_gateway.close_codes import SERVICE_RESTART
from herdgate_gateway.front_door.protocol import front_door_class
from herdgate_gateway.leases.acts import fence_child, register, take
from herdgate_gateway.leases.memory import MemoryLeases
from herdgate_gateway.leases.rows import ShardRow, WorkerRow, shard_key, shard_of
from herdgate_gateway.leases.table import Done
from herdgate_gateway.routing.router import Router
from herdgate_gateway.settings import load
from tests.herdgate_gateway.gateways import serve, until

__all__ = ["FLEET", "OwningWorker", "Routed", "owning_worker", "routed"]

FLEET = "default"


@dataclass
class OwningWorker:
    """A worker that echoes for shards it owns, and refuses others with 421.

    Attributes:
        epochs: of the shards it owns.
        stamps: shard, epoch and connection id of each handshake, as they came.
        duplicates: what each is told of a second socket.
        closes: what it says to all that it has, if it is told to close.
    """

    url: str = ""
    name: str = "w"
    epochs: dict[int, int] = field(default_factory=dict)
    stamps: list[tuple[int, int, str]] = field(default_factory=list)
    duplicates: list[str | None] = field(default_factory=list)
    sockets: list[Send] = field(default_factory=list)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The app."""
        told = {name.decode(): value.decode() for name, value in scope["headers"]}
        shard, epoch = int(told["herdgate-shard"]), int(told["herdgate-epoch"])
        self.stamps.append((shard, epoch, told["herdgate-connection-id"]))
        self.duplicates.append(told.get("herdgate-duplicates"))
        await receive()
        if self.epochs.get(shard) != epoch:
            headers = [(b"herdgate-shard", b"%d" % shard), (b"herdgate-epoch", b"0"), (b"content-length", b"0")]
            await send({"type": "websocket.http.response.start", "status": 421, "headers": headers})
            await send({"type": "websocket.http.response.body", "body": b""})
            return
        await send({"type": "websocket.accept"})
        self.sockets.append(send)
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": f"{self.name}: {message.get('text')}"})

    async def close_all(self, code: int, reason: str) -> None:
        """Say goodbye to all."""
        for send in self.sockets:
            await send({"type": "websocket.close", "code": code, "reason": reason})


@asynccontextmanager
async def owning_worker(name: str = "w") -> AsyncIterator[OwningWorker]:
    """One on uvicorn."""
    worker = OwningWorker(name=name)
    async with serve(worker.app, ws="websockets-sansio") as port:
        worker.url = f"ws://127.0.0.1:{port}"
        yield worker


@dataclass
class Routed:
    """A gateway that serves."""

    port: int
    gateway: Gateway
    table: MemoryLeases

    async def own(self, connection_id: str, worker: OwningWorker, *, tell_worker: bool = True, inc: str = "") -> int:
        """Write that this worker owns the shard of a connection: its epoch."""
        shard = shard_of(connection_id)
        inc = inc or f"inc-{worker.name}"
        mine = WorkerRow(worker.name, inc, None, "UP", 1, 3_000, worker.url, 100, 0)
        item = await self.table.read(shard_key(FLEET, shard), strong=True)
        outcome = await self.table.write(take(FLEET, mine, shard, None if item is None else ShardRow.of(item)))
        assert isinstance(outcome, Done)
        epoch: int = outcome.item["epoch"]
        if tell_worker:
            worker.epochs[shard] = epoch
        return epoch

    async def hear(self, connection_id: str, worker: OwningWorker, epoch: int, inc: str = "") -> None:
        """The news that goes with that; until it is known."""
        told = {"worker": worker.name, "inc": inc or f"inc-{worker.name}", "addr": worker.url}
        shard, owners = shard_of(connection_id), self.router.owners
        self.news({"owner": told, "epochs": {str(shard): epoch}})
        await until(lambda: (owner := owners.find(shard)) is not None and owner.epoch >= epoch, "it is known")

    async def die(self, worker: OwningWorker) -> None:
        """Its life is over, by the table, and known to be."""
        inc = f"inc-{worker.name}"
        row = WorkerRow(worker.name, inc, None, "UP", 1, 3_000, worker.url, 100, 0)
        await self.table.write(register(FLEET, row, None))
        await self.table.write(fence_child(FLEET, worker.name, inc))
        self.news({"dead": inc})
        await until(lambda: inc not in {owner.inc for owner in self.router.owners}, "it is known")

    @property
    def router(self) -> Router:
        """Its router."""
        assert self.gateway.router is not None
        return self.gateway.router

    def news(self, news: dict[str, Any]) -> None:
        """Anything that a channel may bring."""
        self.router.hear(news)

    async def is_idle(self) -> None:
        """Wait until nothing is open."""
        gate, pool = self.gateway.gates["default"], self.gateway.pool

        def idle() -> bool:
            counts = gate.snapshot()
            return not counts.open + counts.pending + sum(worker.open + worker.pending for worker in pool.snapshot())

        await until(idle, "nothing is open")


@asynccontextmanager
async def routed(mode: str = "splice", **settings: Any) -> AsyncIterator[Routed]:
    """A gateway whose connection ids stand in the query, as `id`."""
    route = {"name": "default", "connection_id": {"query": "id"}}
    wanted = {"rate": 1_000.0, "routes": [route], "relay": {"mode": mode, "close_s": 1.0}, **settings}
    table = MemoryLeases()
    gateway = Gateway(load(wanted, None, {}), leases=table)
    ours = client_leg_class(max_message_bytes=1 << 20, max_fragment_bytes=1 << 20, close_s=1)
    async with serve(gateway, http=front_door_class(gateway), ws=ours, ws_ping_interval=None) as port:
        gateway.start()
        try:
            assert gateway.router is not None
            router = gateway.router
            await until(lambda: router.is_ready, "the owners are read")
            yield Routed(port, gateway, table)
        finally:
            if gateway.splices is not None:
                await gateway.splices.aclose(SERVICE_RESTART, "", 1)
            await gateway.aclose()
