"""A gateway and its workers, real sockets all of them, in the loop of the test: so what is left behind can be counted.

    async with echo_worker() as worker, gateway([worker.url]) as front:
        ... front.port, front.pool, worker.seen

Rules: every server is ended with its block. `Scripted` workers speak in bytes, and do what no library would.
"""

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from uvicorn import Config, Server

from herdgate import AdmissionMiddleware, Gate, Limits
from herdgate.asgi import ASGIApp, Receive, Scope, Send
from herdgate.reception import Reception
from herdgate_gateway.app import Gateway
from herdgate_gateway.breaker import BreakerSettings
from herdgate_gateway.client_leg import client_leg_class
from herdgate_gateway.close_codes import SERVICE_RESTART
from herdgate_gateway.connection_ids import ConnectionIds
from herdgate_gateway.front_door.protocol import front_door_class
from herdgate_gateway.handshake import CheckedHandshake
from herdgate_gateway.http_leg import HttpLeg
from herdgate_gateway.relay import MessageRelay, RelaySettings
from herdgate_gateway.splice.relay import SpliceRelay
from herdgate_gateway.workers import WorkerPool
from tests.wire import WAIT_S, eventually

__all__ = [
    "CALLED_BACK",
    "CLIENT_LEGS",
    "DEFAULT",
    "MESSAGE_LEGS",
    "EchoWorker",
    "Front",
    "ScriptedWorker",
    "Visitor",
    "closed_port",
    "echo_worker",
    "frame",
    "gateway",
    "open_files",
    "scripted_worker",
    "serve",
    "through",
    "until",
]

CLIENT_LEGS = ("splice", "ours", "websockets-sansio", "wsproto")
"""What speaks to the client: nothing but bytes, our own class, and uvicorn's two as they are."""

MESSAGE_LEGS = CLIENT_LEGS[1:]
"""Those that take messages apart, and answer for what is in them."""


class _CalledBack:
    """Equals every reason that tells a client when to come back, and what to show then, if anything."""

    def __eq__(self, reason: object) -> bool:
        told = json.loads(str(reason))
        return set(told) <= {"retry_ms", "ticket", "reconnect"} and told["retry_ms"] > 0

    __hash__ = None  # type: ignore[assignment]


CALLED_BACK: Any = _CalledBack()


@asynccontextmanager
async def serve(app: ASGIApp, **config: Any) -> AsyncIterator[int]:
    """An app on uvicorn in this loop; the port."""
    server = Server(Config(app, interface="asgi3", log_config=None, lifespan="off", **config))
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(proto=socket.IPPROTO_TCP))
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        serving = asyncio.ensure_future(server._serve([listener]))
        await until(lambda: server.started or serving.done(), "the server starts")
        try:
            yield port
        finally:
            server.should_exit = True
            await asyncio.wait_for(serving, WAIT_S)


@dataclass
class Front:
    """A gateway that serves."""

    port: int
    pool: WorkerPool
    gate: Gate

    async def is_idle(self, within_s: float = 8.0) -> None:
        """Wait until no permit and no worker is taken."""

        def idle() -> bool:
            snapshot = self.gate.snapshot()
            loads = [worker.open + worker.pending for worker in self.pool.snapshot()]
            return not any((snapshot.open, snapshot.pending, *loads))

        await until(idle, "nothing is open", within_s=within_s)


@asynccontextmanager
async def gateway(
    workers: Sequence[str],
    *,
    leg: str | None = None,
    settings: RelaySettings | None = None,
    breaker: BreakerSettings | None = None,
    limits: Limits | None = None,
    denial: Any = "auto",
    connection_ids: ConnectionIds | None = None,
    **relay: Any,
) -> AsyncIterator[Front]:
    """A gateway before these workers.

    Args:
        leg: one of `CLIENT_LEGS`; None: `DEFAULT.leg`.
    """
    leg = leg or DEFAULT.leg
    settings = settings or RelaySettings(close_s=1)
    pool = WorkerPool(workers, breaker)
    gate = Gate(limits or Limits(rate=None))
    behind = MessageRelay(pool, settings, **relay)
    guarded = AdmissionMiddleware(behind, gate=gate, denial=denial)
    app = CheckedHandshake(guarded, connection_ids)
    ours = client_leg_class(
        max_message_bytes=settings.max_message_bytes,
        max_fragment_bytes=settings.max_fragment_bytes or settings.max_message_bytes,
        close_s=settings.close_s,
    )
    ws: Any = ours if leg in ("ours", "splice") else leg
    options: dict[str, Any] = {
        "ws_max_size": settings.max_message_bytes,
        "ws_ping_interval": None,
        "proxy_headers": False,
    }
    splices = SpliceRelay(pool, settings, behind.forwarding, member=relay.get("member"))
    if leg == "ours":
        options["http"] = HttpLeg
    elif leg == "splice":
        options["http"] = front_door_class(cast("Gateway", _OneRoute(splices, guarded.reception, gate, app)))
    async with serve(app, ws=ws, ws_per_message_deflate=leg not in ("ours", "splice"), **options) as port:
        try:
            yield Front(port, pool, gate)
        finally:
            await splices.aclose(SERVICE_RESTART, "", 1)


@dataclass(frozen=True)
class _OneRoute:
    """What a front door asks of a gateway and of its routes, for one route on every path."""

    splices: SpliceRelay
    reception: Reception
    gate: Gate
    checks: CheckedHandshake
    authentication: None = None

    def route_of(self, path: str) -> "_OneRoute":
        """This one."""
        return self


@dataclass
class _Default:
    """What tests get that do not ask.

    Attributes:
        leg: one of `CLIENT_LEGS`.
    """

    leg: str = "ours"


DEFAULT = _Default()


@asynccontextmanager
async def through(worker: str, settings: RelaySettings, **config: Any) -> AsyncIterator[int]:
    """The relay alone, on uvicorn as it is."""
    async with serve(MessageRelay(WorkerPool([worker]), settings), **config) as port:
        yield port


@dataclass
class EchoWorker:
    """A worker that echoes.

    Attributes:
        seen: the scopes of its handshakes.
        ended: the disconnects it was told of.
    """

    url: str = ""
    subprotocol: str | None = None
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    seen: list[Scope] = field(default_factory=list)
    ended: list[tuple[int, str]] = field(default_factory=list)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The app."""
        self.seen.append(scope)
        await receive()
        await send({"type": "websocket.accept", "subprotocol": self.subprotocol, "headers": self.headers})
        while (message := await receive())["type"] == "websocket.receive":
            if (text := message.get("text")) and text.startswith("close "):
                _, code, reason = text.split(" ", 2)
                await send({"type": "websocket.close", "code": int(code), "reason": reason})
            elif message.get("text") is not None:
                await send({"type": "websocket.send", "text": message["text"]})
            else:
                await send({"type": "websocket.send", "bytes": message["bytes"]})
        self.ended.append((message["code"], message.get("reason") or ""))


@asynccontextmanager
async def echo_worker(**settings: Any) -> AsyncIterator[EchoWorker]:
    """An echo app on uvicorn."""
    ws = settings.pop("ws", "websockets-sansio")
    worker = EchoWorker(**settings)
    async with serve(worker.app, ws=ws, ws_max_size=1 << 26) as port:
        worker.url = f"ws://127.0.0.1:{port}"
        yield worker


@dataclass
class Visitor:
    """One connection to a scripted worker."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: bytes = b""

    async def read_head(self) -> bytes:
        """The request."""
        self.head = self.head or await self.reader.readuntil(b"\r\n\r\n")
        return self.head

    def header(self, name: str) -> list[str]:
        """All values of a header of the request."""
        lines = [line.partition(":") for line in self.head.decode("latin-1").split("\r\n")[1:]]
        return [value.strip() for key, _, value in lines if key.lower() == name.lower()]

    async def accept(self, *extra: str, then: bytes = b"") -> None:
        """Read the request and answer 101, with more behind it in the same segment."""
        await self.read_head()
        magic = self.header("sec-websocket-key")[0] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(magic.encode()).digest()).decode()
        lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
        lines += [f"Sec-WebSocket-Accept: {accept}", *extra]
        await self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + then)

    async def send(self, data: bytes) -> None:
        """Write all of it."""
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        """Hang up with a RST."""
        linger = b"\1\0\0\0\0\0\0\0"
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort()


@dataclass
class ScriptedWorker:
    """Where it listens, and how often it was dialled."""

    url: str = ""
    visits: list[Visitor] = field(default_factory=list)


@asynccontextmanager
async def scripted_worker(script: Callable[[Visitor], Awaitable[None]]) -> AsyncIterator[ScriptedWorker]:
    """A worker that runs `script` for each connection, and hangs up after it."""
    worker = ScriptedWorker()
    running: set[asyncio.Task[None]] = set()

    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        visitor = Visitor(reader, writer)
        worker.visits.append(visitor)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await script(visitor)
        finally:
            writer.close()
            running.discard(task)

    server = await asyncio.start_server(visit, "127.0.0.1", 0)
    worker.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield worker
    finally:
        server.close()
        for task in tuple(running):
            task.cancel()
        for visitor in worker.visits:
            visitor.writer.transport.abort()
        if running:
            await asyncio.wait(tuple(running))


async def until(condition: Callable[[], bool], what: str, *, within_s: float = 8.0) -> None:
    """Poll until `condition` holds; fail if it does not within the time."""

    async def holds() -> bool:
        return condition()

    await eventually(holds, what, within_s=within_s)


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, mask: bool = False) -> bytes:
    """One frame (RFC 6455 section 5.2); masked with zeros, as a client's has to be masked."""
    bit = 0x80 if mask else 0
    size = len(payload)
    if size < 126:
        length = bytes((bit | size,))
    elif size < 65_536:
        length = bytes((bit | 126,)) + size.to_bytes(2, "big")
    else:
        length = bytes((bit | 127,)) + size.to_bytes(8, "big")
    return bytes(((0x80 if fin else 0) | opcode,)) + length + (b"\0\0\0\0" if mask else b"") + payload


def closed_port() -> str:
    """The URL of a worker that is not there."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return f"ws://127.0.0.1:{sock.getsockname()[1]}"


def open_files() -> int:
    """File descriptors of this process."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208
