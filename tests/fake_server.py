"""An ASGI server in a script: the test says what the client does and reads what the app has sent.

For what a real server does only now and then: events at an exact moment, odd scopes, channels that fail.
"""

import asyncio
from collections import deque
from typing import Any

from herdgate import Gate
from herdgate.asgi import ASGIApp, Message, Receive, Scope, Send

__all__ = ["CONNECT", "LEFT", "Connection", "check_idle", "echo", "http_scope", "nothing", "turns", "websocket_scope"]

CONNECT: Message = {"type": "websocket.connect"}
LEFT: Message = {"type": "websocket.disconnect", "code": 1006}


def websocket_scope(path: str = "/ws", *, headers: dict[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    """The scope of a handshake on a server that offers HTTP denials."""
    scope = {
        "type": "websocket",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "scheme": "ws",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"here.example")],
        "client": ("192.0.2.1", 50_000),
        "server": ("192.0.2.9", 80),
        "subprotocols": [],
        "extensions": {"websocket.http.response": {}},
    }
    added = [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()]
    scope["headers"] = [(b"host", b"here.example"), *added]
    return {**scope, **changes}


def http_scope(path: str = "/", *, headers: dict[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    """The scope of a plain GET."""
    changes = {"type": "http", "scheme": "http", "method": "GET", **changes}
    scope = websocket_scope(path, headers=headers, **changes)
    del scope["subprotocols"], scope["extensions"]
    return scope


async def turns(count: int) -> None:
    """Give the event loop so many turns."""
    for _ in range(count):
        await asyncio.sleep(0)


class Connection:
    """One client, from its first event on. It has asked to connect; answers are in `sent`.

    Attributes:
        sent: what the app has sent so far.
        task: the app.
    """

    def __init__(self, app: ASGIApp, scope: Scope, *events: Message) -> None:
        self.scope = scope
        self.sent: list[Message] = []
        self._app = app
        self._events = deque(events or ([CONNECT] if scope["type"] == "websocket" else []))
        self._arrived = asyncio.Event()
        self._gone = False
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))

    @property
    def types(self) -> list[str]:
        """The types of all that was sent, without their first word."""
        return [message["type"].partition(".")[2] for message in self.sent]

    def event(self, message: Message) -> None:
        """Something arrives."""
        self._events.append(message)
        self._arrived.set()

    def leave(self) -> None:
        """The client is gone; what is sent from now on fails, as servers say it should."""
        self._gone = True
        self.event(LEFT if self.scope["type"] == "websocket" else {"type": "http.disconnect"})

    async def done(self) -> "Connection":
        """Wait for the app; raises what it raised."""
        await asyncio.wait_for(self.task, 5)
        return self

    async def ended(self) -> None:
        """Wait for the app, whatever it raises."""
        await asyncio.wait((self.task,), timeout=5)
        assert self.task.done()
        if not self.task.cancelled():
            self.task.exception()

    async def _receive(self) -> Message:
        while not self._events:
            self._arrived.clear()
            await self._arrived.wait()
        return self._events.popleft()

    async def _send(self, message: Message) -> None:
        if self._gone:
            raise OSError("the client has left")
        self.sent.append(message)
        if message["type"] == "websocket.close" or message["type"].endswith(".body"):
            self.event(LEFT)
            self.event(LEFT)


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends back what it gets; a page for plain HTTP."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"page"})
        return
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


def check_idle(gate: Gate) -> None:
    """Fail if a permit is taken or somebody held."""
    snapshot = gate.snapshot()
    assert (snapshot.pending, snapshot.open, snapshot.held, snapshot.client_keys) == (0, 0, 0, 0)


async def nothing(message: Message) -> None:
    """Sends nowhere."""
