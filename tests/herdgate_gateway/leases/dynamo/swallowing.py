"""A proxy that can swallow replies: requests go through, and nobody hears what became of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from herdgate_gateway.tasks import reap

__all__ = ["SwallowingProxy", "swallowing_proxy"]


class SwallowingProxy:
    """Where it is, and whether it swallows replies at the moment; those swallowed are counted in bytes."""

    def __init__(self) -> None:
        self.url = ""
        self.swallows = False
        self.swallowed = 0


@asynccontextmanager
async def swallowing_proxy(port: int) -> AsyncIterator[SwallowingProxy]:
    """In front of a server on a port of 127.0.0.1."""
    proxy = SwallowingProxy()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_reply: bool) -> None:
        while data := await reader.read(65_536):
            if is_reply and proxy.swallows:
                proxy.swallowed += len(data)
            else:
                writer.write(data)
                await writer.drain()

    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        both = [
            asyncio.create_task(pump(reader, far_writer, False)),
            asyncio.create_task(pump(far_reader, writer, True)),
        ]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await reap(*both)
            for end in (writer, far_writer):
                end.close()
                with suppress(OSError):
                    await end.wait_closed()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.create_task(serve(reader, writer)))

    async with await asyncio.start_server(begin, "127.0.0.1", 0) as server:
        proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield proxy
        finally:
            await reap(*serving)
