"""What a worker tells the gateways of its fleet: how many sockets it has and takes, and how it fares.

    app = LoadReport(app, Fleet("redis://host"), name="ws://10.0.1.11:9001", capacity=2_000)

Once a second it writes to the fleet's Redis, and the gateways keep to it: nobody is sent to a worker beyond its
capacity, and the rate can follow how the workers fare. No request ever waits for Redis, or fails for it.
"""

import re
import time
from typing import TYPE_CHECKING, Literal

from herdgate.asgi import ASGIApp, Message, Receive, Scope, Send
from herdgate.core.errors import ConfigurationError
from herdgate.core.numbers import check_number
from herdgate.fleet import Fleet, fleet_of
from herdgate.load import Load

if TYPE_CHECKING:
    from herdgate.stores.redis.reporter import Words

__all__ = ["LoadReport"]

WorkerState = Literal["UP", "DRAINING", "FULL"]

_GATEWAY_HEADER = b"herdgate-gateway"
_GATEWAY = re.compile(rb"[0-9a-f]{16}")  # as gateways are named; nobody else's words go to Redis
_NAME = re.compile(r"[\x21-\x7e]{1,256}")


class LoadReport:
    """Reports the WebSockets of an ASGI app to its fleet. One process has one name: several of them need several.

    It begins with the server's lifespan, or with the first request where the server has none.

    Args:
        app: the worker's app; it gets everything as it comes.
        fleet: the fleet of its gateways: a `Fleet`, or the URL of its Redis.
        name: what the gateways call it: as in their `workers`, "ws://10.0.1.11:9001".
        capacity: sockets it takes, pending and open, of all gateways together; 0: none; None: no limit.

    Raises:
        ConfigurationError: one of these is not of its kind.
    """

    def __init__(self, app: ASGIApp, fleet: Fleet | str, *, name: str, capacity: int | None = None) -> None:
        if not callable(app):
            raise ConfigurationError("app", app, "give the ASGI app of the worker")
        fleet = fleet_of("fleet", fleet)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigurationError("name", name, 'write what the gateways call it, as in "ws://10.0.1.11:9001"')
        check_number("capacity", capacity, least=0, unit="a whole number of sockets", none="no limit", whole=True)
        from herdgate.stores.redis.reporter import Reporter

        self.app = app
        self._name, self._capacity = name, capacity
        self._load = Load()
        self._is_draining = False
        self._reporter = Reporter(fleet, self._words)

    @property
    def state(self) -> WorkerState:
        """`DRAINING` and `FULL` workers get no arrivals."""
        if self._is_draining:
            return "DRAINING"
        return "FULL" if self._capacity is not None and self._load.sockets >= self._capacity else "UP"

    def drain(self) -> None:
        """Ask for no more arrivals, from a moment later on; sockets stay."""
        self._is_draining = True

    def resume(self) -> None:
        """Take arrivals again."""
        self._is_draining = False

    async def aclose(self) -> None:
        """Say once more that it is draining, and report no more; done by itself when the server's lifespan ends."""
        self.drain()
        await self._reporter.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._reporter.start()
        if scope["type"] == "websocket":
            await self._count(scope, receive, send)
        else:
            await self.app(scope, self._until_shutdown(receive) if scope["type"] == "lifespan" else receive, send)

    async def _count(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket = self._load.arrive(_gateway_of(scope), time.monotonic())

        async def send_noting_accept(message: Message) -> None:
            if message["type"] == "websocket.accept":
                socket.accepted(time.monotonic())
            await send(message)

        try:
            await self.app(scope, receive, send_noting_accept)
        finally:
            socket.gone()

    def _until_shutdown(self, receive: Receive) -> Receive:
        async def receive_noting_shutdown() -> Message:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.aclose()
            return message

        return receive_noting_shutdown

    def _words(self) -> "Words":
        return self._name, self._capacity, self.state, self._load.figures(time.monotonic())


def _gateway_of(scope: Scope) -> str:
    values = [value for name, value in scope["headers"] if name == _GATEWAY_HEADER]
    return values[0].decode() if len(values) == 1 and _GATEWAY.fullmatch(values[0]) else ""
