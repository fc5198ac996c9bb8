"""The service that authentication asks, on a real socket, as good or bad as a test wants it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

__all__ = ["Stub", "stub"]

Headers = list[tuple[bytes, bytes]]


class Stub:
    """What it answers, and what it was asked.

    Attributes:
        status: of its answers; 0: it hangs up instead.
        headers: of its answers.
        body: of its answers.
        latency_s: seconds before it answers.
        requests: request lines and headers so far.
        connections: accepted so far.
        busy: requests being worked on.
        most_busy: most of them at the same time.
    """

    def __init__(self) -> None:
        self.status = 200
        self.headers: Headers = []
        self.body = b""
        self.latency_s = 0.0
        self.requests: list[tuple[bytes, Headers]] = []
        self.connections = self.busy = self.most_busy = 0
        self.port = 0

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}/check"

    def values(self, name: bytes) -> list[bytes]:
        """What it was sent under a name, last request."""
        return [value for key, value in self.requests[-1][1] if key == name]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                while await self._answer(await reader.readuntil(b"\r\n\r\n"), reader, writer):
                    pass
        finally:
            writer.transport.abort()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        line, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
        pairs = (text.partition(b":") for text in lines)
        self.requests.append((line, [(name.lower(), value.strip()) for name, _, value in pairs]))
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        try:
            if self.latency_s:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.latency_s):
                        await reader.read(1)  # ends early where the caller hangs up
                        return False
        finally:
            self.busy -= 1
        if not self.status:
            return False
        told = [b"HTTP/1.1 %d x" % self.status, b"content-length: %d" % len(self.body)]
        told += [name + b": " + value for name, value in self.headers]
        writer.write(b"\r\n".join(told) + b"\r\n\r\n" + self.body)
        await writer.drain()
        return True


@asynccontextmanager
async def stub() -> AsyncIterator[Stub]:
    """A service on a free port."""
    service = Stub()
    connections: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(service.serve(reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=1024)
    service.port = server.sockets[0].getsockname()[1]
    try:
        yield service
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await server.wait_closed()
