"""A TCP balancer: new connections go round the gateways that are ready, by what `/readyz` says ten times a second.

Run as `python -m herdgate_loadtest.bench.drain.balancer TARGETS FD CONTROL`, TARGETS being JSON, `[[port, admin port],
...]`: it serves on the listening socket FD, and on CONTROL answers

    GET /stats                                        open connections of each target, and how many were cut so far
    GET /deregister?target=0&sends_s=10&cuts_s=16&tells=1
                                                      play a cloud's balancer: new connections still go there for 10 s,
                                                      ready or not; after 16 s what is left is cut
    POST /                                            DescribeTargetHealth of ELBv2: a target that was deregistered is
                                                      `draining`, if that is to be told
"""

import asyncio
import json
import socket
import sys
from typing import cast
from urllib.parse import parse_qs, urlsplit

import uvloop

from herdgate_loadtest.servers.children import HOST

__all__ = ["GROUP", "main"]

GROUP = "arn:aws:elasticloadbalancing:us-east-1:111122223333:targetgroup/bench/0123456789abcdef"
"""The target group that it plays; `HOST:PORT` are its targets."""

_LOOK_S = 0.1
_ASK_S = 2.0


class Target:
    """One gateway.

    Attributes:
        is_ready: it says so.
        sends_until: new connections go there until then, ready or not; None: it is not deregistered.
        is_told: who asks for its health hears that it is deregistered.
        pairs: open connections.
        cut: how many were cut.
    """

    def __init__(self, port: int, admin: int) -> None:
        self.port, self._admin = port, admin
        self.is_ready = False
        self.sends_until: float | None = None
        self.is_told = False
        self.pairs: set[Pair] = set()
        self.cut = 0

    @property
    def health(self) -> str:
        """As ELBv2 has it."""
        if self.is_told:
            return "draining"
        return "healthy" if self.is_ready else "unhealthy"

    def takes(self, now: float) -> bool:
        """New connections go there."""
        return self.is_ready if self.sends_until is None else now < self.sends_until

    def cut_all(self) -> None:
        """Cut what is open."""
        for pair in tuple(self.pairs):
            pair.abort()
            self.cut += 1

    async def watch(self) -> None:
        """Ask it whether it is ready, again and again."""
        while True:
            self.is_ready = await self._ask()
            await asyncio.sleep(_LOOK_S)

    async def _ask(self) -> bool:
        try:
            async with asyncio.timeout(_ASK_S):
                reader, writer = await asyncio.open_connection(HOST, self._admin)
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: balancer\r\nConnection: close\r\n\r\n")
                line = await reader.readline()
                writer.close()
        except (OSError, TimeoutError):
            return False
        return line.startswith(b"HTTP/1.1 200")


class Side(asyncio.Protocol):
    """One end of a pair."""

    transport: asyncio.Transport
    other: "Side | None" = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop's own is no subclass

    def data_received(self, data: bytes) -> None:
        """Pass it on."""
        if self.other is not None:
            self.other.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the other one too."""
        if self.other is not None:
            self.other.transport.close()


class Pair(Side):
    """A client's connection, and with it the one to a gateway."""

    def __init__(self, balancer: "Balancer") -> None:
        self._balancer = balancer
        self._target: Target | None = None
        self._early = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client: choose a gateway for it."""
        super().connection_made(transport)
        self._joining = asyncio.ensure_future(self._join())

    def data_received(self, data: bytes) -> None:
        """Pass it on, once there is somebody."""
        if self.other is None:
            self._early += data
        else:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        super().connection_lost(exc)
        if self._target is not None:
            self._target.pairs.discard(self)

    def abort(self) -> None:
        """Cut both ends."""
        self.transport.abort()
        if self.other is not None:
            self.other.transport.abort()

    async def _join(self) -> None:
        target = self._balancer.choose()
        if target is None:
            self.transport.abort()
            return
        try:
            _, side = await asyncio.get_running_loop().create_connection(Side, HOST, target.port)
        except OSError:
            self.transport.abort()
            return
        self.other, side.other = side, self
        self._target = target
        target.pairs.add(self)
        side.transport.write(self._early)
        if self.transport.is_closing():
            self.connection_lost(None)


class Balancer:
    """All of it."""

    def __init__(self, targets: list[Target]) -> None:
        self._targets = targets
        self._turn = 0

    def choose(self) -> Target | None:
        """The next one in turn; None: nobody is there."""
        now = asyncio.get_running_loop().time()
        taking = [target for target in self._targets if target.takes(now)]
        self._turn += 1
        return taking[self._turn % len(taking)] if taking else None

    async def serve(self, listener: socket.socket, control: socket.socket) -> None:
        """Until it is ended."""
        loop = asyncio.get_running_loop()
        watching = [asyncio.ensure_future(target.watch()) for target in self._targets]
        await loop.create_server(lambda: Pair(self), sock=listener, backlog=4096)
        await asyncio.start_server(self._obey, sock=control)
        await asyncio.gather(*watching)

    async def _obey(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, path, *_ = (await reader.readuntil(b"\r\n\r\n")).decode().split(" ")
        request = urlsplit(path)
        asked = {name: float(values[0]) for name, values in parse_qs(request.query).items()}
        if request.path == "/deregister":
            target = self._targets[int(asked["target"])]
            self._deregister(target, asked["sends_s"], asked["cuts_s"], is_told=asked["tells"] > 0)
        body = (self._health() if method == "POST" else json.dumps(self._stats())).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        writer.close()

    def _deregister(self, target: Target, sends_s: float, cuts_s: float, *, is_told: bool) -> None:
        loop = asyncio.get_running_loop()
        target.is_told = is_told
        target.sends_until = loop.time() + sends_s
        loop.call_later(cuts_s, target.cut_all)

    def _health(self) -> str:
        members = "".join(
            f"<member><Target><Id>{HOST}</Id><Port>{target.port}</Port></Target>"
            f"<TargetHealth><State>{target.health}</State></TargetHealth></member>"
            for target in self._targets
        )
        result = f"<TargetHealthDescriptions>{members}</TargetHealthDescriptions>"
        return (
            f"<DescribeTargetHealthResponse><DescribeTargetHealthResult>{result}</DescribeTargetHealthResult>"
            "</DescribeTargetHealthResponse>"
        )

    def _stats(self) -> dict[str, list[int]]:
        return {
            "ready": [int(target.is_ready) for target in self._targets],
            "open": [len(target.pairs) for target in self._targets],
            "cut": [target.cut for target in self._targets],
        }


def main() -> None:
    """Serve until told to stop."""
    targets = [Target(port, admin) for port, admin in json.loads(sys.argv[1])]
    with socket.socket(fileno=int(sys.argv[2])) as listener, socket.socket(fileno=int(sys.argv[3])) as control:
        uvloop.run(Balancer(targets).serve(listener, control))


if __name__ == "__main__":
    main()
