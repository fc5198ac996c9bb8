"""What a worker tells the gateways of its load: a socket counts until it has ended, whatever its app does then."""

from contextvars import ContextVar

from herdgate import Fleet, LoadReport
from herdgate.asgi import ASGIApp, Receive, Scope, Send
from herdgate.load import Load, Socket
from herdgate_gateway.worker_kit.line import EXTENSION, Line

__all__ = ["Reported"]

_line: ContextVar[Line] = ContextVar("line")


class Reported(LoadReport):
    """A `LoadReport` that finds the line of a socket in its scope; arguments as there."""

    def __init__(self, app: ASGIApp, fleet: Fleet, *, name: str, capacity: int) -> None:
        super().__init__(app, fleet, name=name, capacity=capacity)
        self._load = _Load()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            _line.set(scope["extensions"][EXTENSION])
        await super().__call__(scope, receive, send)


class _Load(Load):
    def arrive(self, gateway: str, now: float) -> Socket:
        socket = super().arrive(gateway, now)
        _line.get().when_gone(socket.gone)
        return socket
