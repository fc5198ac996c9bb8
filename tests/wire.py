"""Clients for tests: a handshake's answer as it stands on the wire, and connections that end rudely.

Rules: nothing waits for ever, and nothing is hidden: status, headers and body come back as they were sent.
"""

import asyncio
import base64
import json
import os
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

__all__ = ["Answer", "Closed", "Raw", "ask", "eventually", "handshake", "knock", "open_socket", "raw", "read_close"]

WAIT_S = 10.0

Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Answer:
    """An HTTP response.

    Attributes:
        headers: by lower-case name.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Closed:
    """How an accepted WebSocket was closed.

    Attributes:
        headers: of the 101, by lower-case name.
    """

    code: int
    reason: str
    subprotocol: str | None
    headers: dict[str, str]

    def json(self) -> Any:
        """The reason, read as JSON."""
        return json.loads(self.reason)


def open_socket(
    port: int,
    path: str,
    *,
    headers: Pairs = (),
    subprotocols: Sequence[str] | None = None,
    source: str | None = None,
    max_size: int = 1 << 20,
) -> connect:
    """A WebSocket of the `websockets` library; awaiting it raises `InvalidStatus` for a denial."""
    return connect(
        f"ws://127.0.0.1:{port}{path}",
        additional_headers=list(headers),
        subprotocols=[Subprotocol(name) for name in subprotocols] if subprotocols else None,
        compression=None,
        proxy=None,
        open_timeout=WAIT_S,
        close_timeout=WAIT_S,
        ping_interval=None,
        max_size=max_size,
        local_addr=(source, 0) if source else None,
    )


async def knock(port: int, path: str, **options: Any) -> Answer:
    """The answer to a handshake: 101, closed at once, or a denial."""
    try:
        async with open_socket(port, path, **options) as client:
            response = client.response
    except InvalidStatus as error:
        response = error.response
    assert response is not None
    headers = {name.lower(): value for name, value in response.headers.raw_items()}
    return Answer(response.status_code, headers, bytes(response.body or b""))


async def read_close(port: int, path: str, **options: Any) -> Closed:
    """How the server closes a WebSocket that it has accepted."""
    async with open_socket(port, path, **options) as client:
        return await _read_close(client)


async def _read_close(client: ClientConnection) -> Closed:
    assert client.response is not None
    headers = {name.lower(): value for name, value in client.response.headers.raw_items()}
    with pytest.raises(ConnectionClosed) as closed:
        await asyncio.wait_for(client.recv(), WAIT_S)
    frame = closed.value.rcvd
    assert frame is not None, "no close frame"
    return Closed(frame.code, frame.reason, client.subprotocol, headers)


async def ask(port: int, target: str, *, method: str = "GET", headers: Pairs = (), body: bytes = b"") -> Answer:
    """One HTTP request on a connection of its own."""
    async with raw(port) as client:
        lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        await client.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
        return await client.answer()


def handshake(path: str, *, headers: Pairs = ()) -> bytes:
    """The bytes of an opening handshake (RFC 6455 section 4.1)."""
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade"]
    lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


class Raw:
    """A TCP connection that does what no library would."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Write all of it."""
        self._writer.write(data)
        await asyncio.wait_for(self._writer.drain(), WAIT_S)

    async def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers of the next response."""
        text = await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), WAIT_S)
        status, *lines = text.decode("latin-1").rstrip("\r\n").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        return int(status.split(" ")[1]), {name.lower(): value.strip() for name, _, value in pairs}

    async def answer(self) -> Answer:
        """The next response, whole."""
        status, headers = await self.head()
        if "chunked" in headers.get("transfer-encoding", ""):
            return Answer(status, headers, await self._chunks())
        length = headers.get("content-length")
        body = self._reader.readexactly(int(length)) if length is not None else self._reader.read()
        return Answer(status, headers, await asyncio.wait_for(body, WAIT_S))

    async def read(self, most: int = 65_536) -> bytes:
        """Some bytes; none at the end."""
        return await asyncio.wait_for(self._reader.read(most), WAIT_S)

    async def frame(self) -> tuple[int, bytes]:
        """Opcode and payload of the next short frame of the server (RFC 6455 section 5.2)."""
        first, length = await asyncio.wait_for(self._reader.readexactly(2), WAIT_S)
        assert length < 126, "a long frame"
        return first & 0x0F, await asyncio.wait_for(self._reader.readexactly(length), WAIT_S)

    def reset(self) -> None:
        """Hang up with a RST."""
        self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def _chunks(self) -> bytes:
        body = b""
        while size := int(await asyncio.wait_for(self._reader.readline(), WAIT_S), 16):
            body += (await asyncio.wait_for(self._reader.readexactly(size + 2), WAIT_S))[:-2]
        return body


@asynccontextmanager
async def raw(port: int, data: bytes = b"", *, source: str | None = None) -> AsyncIterator[Raw]:
    """A TCP connection that has sent `data`."""
    local = (source, 0) if source else None
    reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port, local_addr=local), WAIT_S)
    client = Raw(reader, writer)
    try:
        await client.send(data)
        yield client
    finally:
        writer.transport.abort()


async def eventually(condition: Callable[[], Awaitable[bool]], what: str, *, within_s: float = 8.0) -> None:
    """Poll until `condition` holds; fail if it does not within the time."""
    end = time.monotonic() + within_s
    while not await condition():
        assert time.monotonic() < end, f"not within {within_s} s: {what}"
        await asyncio.sleep(0.01)
