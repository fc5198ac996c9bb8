"""A front door of the least kind before a `SpliceRelay`: it reads one head, dials, and joins.

    async with echo_worker() as worker, splice([worker.url]) as front:
        ... front.port, front.relay, front.joint

No gate, no checks: every client is admitted, and its place counted until `ended`.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

from herdgate import Refused
from herdgate.asgi import Scope
from herdgate_gateway.breaker import BreakerSettings
from herdgate_gateway.headers import Forwarding
from herdgate_gateway.relay import RelaySettings
from herdgate_gateway.splice import Joint, SpliceRelay
from herdgate_gateway.worker_leg import WorkerRefused
from herdgate_gateway.workers import WorkerPool
from tests.herdgate_gateway.gateways import until

__all__ = ["OPEN_END", "Front", "scope_of", "splice"]

OPEN_END = BreakerSettings(failures=1_000_000)


@dataclass
class Front:
    """What serves.

    Attributes:
        taken: places of clients that have not been given back.
    """

    relay: SpliceRelay
    pool: WorkerPool
    port: int = 0
    taken: int = 0

    @property
    def joint(self) -> Joint:
        """The only one."""
        (joint,) = self.relay.joints
        return joint

    async def has_joined(self) -> Joint:
        """Wait for the only one."""
        await until(lambda: len(self.relay.joints) == 1, "joined")
        return self.joint

    async def is_idle(self, within_s: float = 8.0) -> None:
        """Wait until nothing is open: no joint, no place, no worker's."""

        def idle() -> bool:
            loads = [worker.open + worker.pending for worker in self.pool.snapshot()]
            return not any((len(self.relay.joints), self.taken, *loads))

        await until(idle, "nothing is open", within_s=within_s)


@asynccontextmanager
async def splice(
    workers: Sequence[str],
    *,
    settings: RelaySettings | None = None,
    tls: ssl.SSLContext | None = None,
    breaker: BreakerSettings = OPEN_END,
    forwarding: Forwarding | None = None,
    **relay: Any,
) -> AsyncIterator[Front]:
    """A front before these workers."""
    pool = WorkerPool(workers, breaker)
    front = Front(SpliceRelay(pool, settings or RelaySettings(close_s=1), forwarding or Forwarding(), **relay), pool)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Door(front), "127.0.0.1", 0, ssl=tls)
    front.port = server.sockets[0].getsockname()[1]
    try:
        yield front
    finally:
        server.close()
        await front.relay.aclose(1001, "", within_s=1.0)


def scope_of(head: bytes, *, client: Any = ("127.0.0.1", 50_000), scheme: str = "ws") -> Scope:
    """The scope of a handshake, as a server makes it."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    path, _, query = first.split(b" ")[1].partition(b"?")
    pairs = [line.partition(b":") for line in lines]
    headers = [(name.lower(), value.strip()) for name, _, value in pairs]
    return {
        "type": "websocket",
        "path": path.decode(),
        "raw_path": path,
        "query_string": query,
        "headers": headers,
        "client": client,
        "scheme": scheme,
        "state": {},
    }


class _Door(asyncio.Protocol):
    """One client until it is joined."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._got = b""
        self._serving: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._got += data
        if self._serving is None and b"\r\n\r\n" in self._got:
            head, end, self._got = self._got.partition(b"\r\n\r\n")
            self._front.taken += 1
            self._serving = asyncio.ensure_future(self._serve(head + end))
            self._serving.add_done_callback(_raise)

    def connection_lost(self, error: Exception | None) -> None:
        if self._serving is not None:
            self._serving.cancel()

    async def _serve(self, head: bytes) -> None:
        scheme = "wss" if self._transport.get_extra_info("sslcontext") else "ws"
        joined = False
        try:
            scope = scope_of(head, client=self._transport.get_extra_info("peername"), scheme=scheme)
            upstream = await self._front.relay.dial(scope, None)
            self._front.relay.join(upstream, self._transport, self._leave, self._got)
            joined = True
        except Refused as refused:
            self._answer(refused.status or 502, [(b"x-from", refused.reason.encode())], b"")
        except WorkerRefused as refused:
            pairs = [(name.encode(), value.encode()) for name, value in refused.response.headers.raw_items()]
            self._answer(refused.response.status_code, pairs, bytes(refused.response.body))
        finally:
            self._serving = None
            if not joined:
                self._leave()

    def _leave(self) -> None:
        self._front.taken -= 1

    def _answer(self, status: int, pairs: list[tuple[bytes, bytes]], body: bytes) -> None:
        kept = [(name, value) for name, value in pairs if name.lower() not in (b"content-length", b"transfer-encoding")]
        lines = [b"HTTP/1.1 %d x" % status, *(b"%b: %b" % pair for pair in kept), b"content-length: %d" % len(body)]
        self._transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        self._transport.close()


def _raise(serving: asyncio.Task[None]) -> None:
    if not serving.cancelled():
        serving.result()
