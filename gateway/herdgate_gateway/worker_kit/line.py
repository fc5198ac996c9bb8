"""A worker's end of a socket: uvicorn's WebSocket protocol, which can be told that its shard has moved.

    Config(app, ws=Line)

What it adds:
- `move`: a close with 1012, `shard moved`, that waits for nobody: not for a peer that does not read, not for the app.
  The app reads a disconnect with 1012 and no message any more, and what it sends raises, as to a client that is gone;
- `replace`: the same with 1008, for a socket whose connection has a newer one; a peer that is slow to read is waited
  for, as one that is cut before it has read the close comes back, and replaces the newer one;
- `refuse`: an answer to a handshake that nobody has answered yet;
- nothing is heard or said without the right to act, even if nobody has called `move` yet: a process that was stopped
  past its lease does nothing for its sockets when it wakes up;
- whoever asks is told when it has ended, even while its app keeps it from being read;
- no line in the log for each socket.

Built on uvicorn 0.54 (the class below it is not its public API).
"""

import select
from asyncio import TimerHandle
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.datastructures import Headers
from websockets.http11 import Response

from herdgate.asgi import ASGIApp, Receive, Scope, Send
from herdgate_gateway.close_codes import POLICY_VIOLATION, SERVICE_RESTART
from herdgate_gateway.quiet import QUIET
from herdgate_gateway.recall import MOVED
from herdgate_gateway.worker_kit.answers import Answer

__all__ = ["EXTENSION", "Line", "hidden"]

EXTENSION = "herdgate.worker_line"
"""Where a scope's extensions hold the line; taken out before the app sees it."""

REPLACED = '{"reason":"replaced","reconnect":false}'
"""The reason of a close with 1008; clients of Centrifugo read it, too."""

CLOSE_S = 5.0
"""Seconds that the peer has to answer the close."""

TAKE_S = 60.0
"""Seconds that a replaced peer has to take what was sent before the close: more than gateways wait for a client."""

_LOOK_S = 1.0
_HUNG_UP = getattr(select, "POLLRDHUP", select.POLLHUP)  # others than Linux tell the end of both ways only


def _always() -> bool:
    return True


def hidden(app: ASGIApp) -> ASGIApp:
    """An app that does not see the line in its scope."""

    async def without_line(scope: Scope, receive: Receive, send: Send) -> None:
        scope.get("extensions", {}).pop(EXTENSION, None)
        await app(scope, receive, send)

    return without_line


class Line(WebSocketsSansIOProtocol):
    """One socket.

    Attributes:
        may_act: asked before each message; set once it is known what the socket belongs to.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.logger = self.conn.logger = QUIET
        self.may_act: Callable[[], bool] = _always
        self._is_parted = self._is_gone = False
        self._leaving: list[Callable[[], None]] = []
        self._look: TimerHandle | None = None

    @property
    def is_unanswered(self) -> bool:
        """True until the handshake has an answer, or the beginning of one."""
        return not self.handshake_complete and self.initial_response is None

    @property
    def is_accepted(self) -> bool:
        """True from the 101 to the close."""
        return self.handshake_complete and not self.close_sent

    def when_gone(self, act: Callable[[], None]) -> None:
        """Call this once the socket has ended; at once if it has already."""
        if self._is_gone:
            act()
        else:
            self._leaving.append(act)

    def move(self, answer: Answer) -> None:
        """The shard is not this worker's any more; harmless to repeat.

        Args:
            answer: for a handshake that is not answered yet.
        """
        if self.is_unanswered:
            self.refuse(answer)
        else:
            self._move()

    def replace(self) -> None:
        """Another socket of its connection is there instead; harmless to repeat."""
        self._part(POLICY_VIOLATION, REPLACED, TAKE_S)

    def refuse(self, answer: Answer) -> None:
        """Answer a handshake that has no answer yet; what its app sends raises, as to a client that is gone."""
        self._is_parted = True
        headers = Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers])
        self.conn.send_response(Response(answer.status, HTTPStatus(answer.status).phrase, headers, answer.body))
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.handshake_complete = self.close_sent = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": 1006})
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._look is not None:
            self._look.cancel()
        self._say_gone()

    def send_receive_event_to_app(self) -> None:
        super().send_receive_event_to_app()
        self._look_later()

    async def run_asgi(self) -> None:
        extensions: Any = self.scope["extensions"]
        extensions[EXTENSION] = self
        await super().run_asgi()

    async def send(self, message: Any) -> None:
        if not self.may_act():
            self._move()
        if self._is_parted:
            raise ClientDisconnected
        try:
            await super().send(message)
        except RuntimeError:  # it has waited until it was closed
            if self._is_parted:
                raise ClientDisconnected from None
            raise

    async def receive(self) -> Any:
        message = await super().receive()
        if message["type"] == "websocket.receive" and not self.may_act():
            self._move()
            return _gone(SERVICE_RESTART, MOVED)
        return message

    def _look_later(self) -> None:
        """Nothing is read while a message waits for the app, so the end would not be seen."""
        if self.read_paused and self._look is None and not self._is_gone:
            self._look = self.loop.call_later(_LOOK_S, self._look_now)

    def _look_now(self) -> None:
        self._look = None
        if self.read_paused and _has_hung_up(self.transport.get_extra_info("socket").fileno()):
            self._say_gone()
        self._look_later()

    def _say_gone(self) -> None:
        self._is_gone = True
        leaving, self._leaving = self._leaving, []
        for act in leaving:
            act()

    def _move(self) -> None:
        self._part(SERVICE_RESTART, MOVED)

    def _part(self, code: int, reason: str, take_s: float = 0.0) -> None:
        if self._is_parted:
            return
        self._is_parted = True
        self.stop_keepalive()
        while not self.queue.empty():
            self.queue.get_nowait()
        self.queue.put_nowait(_gone(code, reason))
        if self.close_sent or self.initial_response is not None or self.transport.is_closing():
            return  # it has ended, or has its answer
        if not self.handshake_complete:
            self.transport.close()
            return
        self._close(code, reason, take_s)
        self.writable.set()  # whoever waits to send gets to know

    def _close(self, code: int, reason: str, take_s: float) -> None:
        self.conn.send_close(code, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()  # the peer's answer
        self._cut_later(self.loop.time() + take_s)

    def _cut_later(self, takes_until: float) -> None:
        self.close_timer = self.loop.call_later(CLOSE_S, self._cut, takes_until)

    def _cut(self, takes_until: float) -> None:
        if self.transport.get_write_buffer_size() and self.loop.time() < takes_until:
            self._cut_later(takes_until)
        else:
            self.transport.abort()


def _has_hung_up(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, _HUNG_UP)
    return bool(poll.poll(0))


def _gone(code: int, reason: str) -> Any:
    return {"type": "websocket.disconnect", "code": code, "reason": reason}
