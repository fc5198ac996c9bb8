"""The worker behind every proxy: it echoes each message, and is quick, as it is not what is measured.

Run as `python -m herdgate_loadtest.bench.sides.echo_worker FD`, it serves on the listening socket it was handed. At
`/leave` it closes at once with 1000, so that whoever is let in is seen to be. `GET /stats` tells how many sockets are
open; any other request without an upgrade is answered 200.
"""

import asyncio
import json
import socket
import sys
from typing import cast

import uvloop

from herdgate_loadtest.engine.wire import accept_for

__all__ = ["EchoProtocol", "Sockets", "main"]

_BLANK_LINE = b"\r\n\r\n"
_CLOSE, _PING = 8, 9
_GOODBYE = b"\x88\x02\x03\xe8"  # close 1000


class Sockets:
    """How many are open.

    Attributes:
        open: upgraded, and not ended.
    """

    def __init__(self) -> None:
        self.open = 0


class EchoProtocol(asyncio.Protocol):
    """One connection."""

    def __init__(self, sockets: Sockets) -> None:
        self._sockets = sockets
        self._unread = b""
        self._is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own is no subclass

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        if self._is_open:
            self._is_open = False
            self._sockets.open -= 1

    def data_received(self, data: bytes) -> None:
        """Read the handshake, then frames."""
        self._unread = data = self._unread + data if self._unread else data
        if self._is_open:
            self._echo(data)
        elif (end := data.find(_BLANK_LINE)) >= 0:
            self._unread = data[end + len(_BLANK_LINE) :]
            self._answer(data[:end])
            if self._is_open and self._unread:
                self._echo(self._unread)

    def _answer(self, head: bytes) -> None:
        request, *lines = head.split(b"\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
        key, path = headers.get(b"sec-websocket-key"), request.split(b" ")[1]
        if key is None:
            body = json.dumps({"open": self._sockets.open}).encode()
            self._transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(body), body)
            )
            self._transport.close()
            return
        self._transport.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: %b\r\n\r\n" % accept_for(key).encode()
        )
        self._is_open = True
        self._sockets.open += 1
        if path == b"/leave":
            self._transport.write(_GOODBYE)
            self._transport.close()

    def _echo(self, data: bytes) -> None:
        at = 0
        while (frame := _unmasked(data, at)) is not None:
            reply, at = frame
            self._transport.write(b"\x8a" + reply[1:] if reply[0] & 0x0F == _PING else reply)
            if reply[0] & 0x0F == _CLOSE:
                self._transport.close()
                return
        self._unread = data[at:]


def _unmasked(data: bytes, at: int) -> tuple[bytes, int] | None:
    """The client's frame at `at` as a server sends it, and where the next one begins; None: it is not whole."""
    if len(data) < at + 2:
        return None
    size, body = data[at + 1] & 0x7F, at + 2
    wide = {126: 2, 127: 8}.get(size, 0)
    if wide:
        size = int.from_bytes(data[body : body + wide], "big")
        body += wide
    header, start = bytes((data[at], data[at + 1] & 0x7F)) + data[at + 2 : body], body + 4
    end = start + size
    if len(data) < end:
        return None
    pad = (data[body:start] * (size // 4 + 1))[:size]  # as for the frames of `engine.frames`
    payload = int.from_bytes(data[start:end], "big") ^ int.from_bytes(pad, "big")
    return header + payload.to_bytes(size, "big"), end


async def _serve(listener: socket.socket) -> None:
    sockets = Sockets()
    server = await asyncio.get_running_loop().create_server(lambda: EchoProtocol(sockets), sock=listener, backlog=4096)
    await server.serve_forever()


def main() -> None:
    """Serve until told to stop."""
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        uvloop.run(_serve(listener))


if __name__ == "__main__":
    main()
