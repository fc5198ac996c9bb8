"""A WebSocket server small enough to misbehave on purpose: a test says, per handshake, what the peer does.

Rules: raw bytes on an asyncio protocol, in the test's own event loop, on loopback, on a port the system chooses.
"""

import asyncio
import base64
import hashlib
import json
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

__all__ = ["Peer", "Server", "eventually", "server_frame", "serving"]

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def server_frame(opcode: int, payload: bytes = b"", *, first: int = 0x80) -> bytes:
    """A short frame as servers send it."""
    return bytes((first | opcode, len(payload))) + payload


class Peer(asyncio.Protocol):
    """One accepted connection.

    Attributes:
        request: request line.
        headers: of the handshake, by lower-case name.
        received: everything after the handshake.
        at: when the handshake was complete, monotonic seconds.
    """

    def __init__(self, server: "Server") -> None:
        self.server = server
        self.request = ""
        self.headers: dict[str, str] = {}
        self.received = b""
        self.at = 0.0
        self.ended: BaseException | bool | None = False
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is none by inheritance
        self.server.peers.append(self)

    def data_received(self, data: bytes) -> None:
        if self.request:
            self.received += data
            return
        self._head += data
        head, blank, self.received = self._head.partition(b"\r\n\r\n")
        if blank:
            self.request, *lines = head.decode().split("\r\n")
            self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            self.at = time.monotonic()
            self.server.handshakes.append(self)
            self.server.answer(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.ended = exc or True
        self.server.peers.remove(self)

    @property
    def ticket(self) -> str | None:
        return self.headers.get("herdgate-ticket")

    def admit(self, *frames: bytes) -> None:
        """Answer 101, and send frames in the same segment."""
        key = self.headers["sec-websocket-key"].encode()
        accept = base64.b64encode(hashlib.sha1(key + GUID, usedforsecurity=False).digest())
        self.send(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: %b\r\n\r\n" % accept,
            *frames,
        )

    def deny(self, status: int = 429, *, retry_ms: int | None = None, ticket: str | None = None) -> None:
        """Answer as herdgate does."""
        body = json.dumps({"error": "come later", "reason": "rate", "retry_ms": retry_ms, "ticket": ticket}).encode()
        lines = [f"HTTP/1.1 {status} Denied", f"Content-Length: {len(body)}", "Connection: close"]
        if retry_ms is not None:
            lines += [f"Retry-After: {-(-retry_ms // 1000)}", f"Herdgate-Retry-Ms: {retry_ms}"]
        if ticket is not None:
            lines.append(f"Herdgate-Ticket: {ticket}")
        self.send("\r\n".join(lines).encode(), b"\r\n\r\n", body)
        self.transport.close()

    def close(self, code: int, **reason: object) -> None:
        """Send a close frame with a JSON reason."""
        self.send(self.close_frame(code, **reason))

    @staticmethod
    def close_frame(code: int, **reason: object) -> bytes:
        text = json.dumps(reason, separators=(",", ":")).encode() if reason else b""
        return server_frame(8, code.to_bytes(2, "big") + text)

    def send(self, *parts: bytes) -> None:
        self.transport.write(b"".join(parts))

    def reset(self) -> None:
        """Hang up with a RST."""
        sock = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


class Server:
    """A listener whose every handshake goes to `answer`.

    Attributes:
        url: where it listens.
        peers: connections that are open now.
        handshakes: all whole handshakes so far, in order.
    """

    def __init__(self, answer: Callable[[Peer], None]) -> None:
        self.answer = answer
        self.url = ""
        self.peers: list[Peer] = []
        self.handshakes: list[Peer] = []


@asynccontextmanager
async def serving(answer: Callable[[Peer], None]) -> AsyncIterator[Server]:
    """A server on a free port of 127.0.0.1."""
    server = Server(answer)
    listener = await asyncio.get_running_loop().create_server(lambda: Peer(server), "127.0.0.1", 0, backlog=1024)
    server.url = f"ws://127.0.0.1:{listener.sockets[0].getsockname()[1]}/ws"
    try:
        yield server
    finally:
        listener.close()
        for peer in list(server.peers):
            peer.transport.abort()
        await eventually(lambda: not server.peers)


async def eventually(condition: Callable[[], bool], *, within_s: float = 8.0) -> None:
    """Poll until `condition` holds; fail if it does not within the time."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "the condition never held"
        await asyncio.sleep(0.005)
