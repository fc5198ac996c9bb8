"""A worker's end of a socket: uvicorn's WebSocket protocol, which can be told that its shard has moved.

    Config(app, ws=Line)

What it adds:
- `move`: a close with 1012, `shard moved`, that waits for nobody: not for a peer that does not read, not for the app.
  The app reads a disconnect with 1012 and no message any more, and what it sends raises, as to a client that is gone;
- nothing is heard or said without the right to act, even if nobody has called `move` yet: a process that was stopped
  past its lease does nothing for its sockets when it wakes up;
- no line in the log for each socket.

Built on uvicorn 0.54 (the class below it is not its public API).
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.datastructures import Headers
from websockets.http11 import Response

from herdgate_gateway.close_codes import SERVICE_RESTART
from herdgate_gateway.quiet import QUIET
from herdgate_gateway.recall import MOVED
from herdgate_gateway.worker_kit.answers import Answer

__all__ = ["EXTENSION", "Line"]

EXTENSION = "herdgate.worker_line"
"""Where a scope's extensions hold the line; taken out before the app sees it."""

CLOSE_S = 5.0
"""Seconds that the peer has to answer the close."""


def _always() -> bool:
    return True


class Line(WebSocketsSansIOProtocol):
    """One socket.

    Attributes:
        may_act: asked before each message; set once it is known what the socket belongs to.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.logger = self.conn.logger = QUIET
        self.may_act: Callable[[], bool] = _always
        self._is_moved = False

    def move(self, answer: Answer) -> None:
        """The shard is not this worker's any more; harmless to repeat.

        Args:
            answer: for a handshake that is not answered yet.
        """
        if not self.handshake_complete and self.initial_response is None:
            self._is_moved = True
            self._refuse(answer)
        else:
            self._move()

    async def run_asgi(self) -> None:
        extensions: Any = self.scope["extensions"]
        extensions[EXTENSION] = self
        await super().run_asgi()

    async def send(self, message: Any) -> None:
        if not self.may_act():
            self._move()
        if self._is_moved:
            raise ClientDisconnected
        try:
            await super().send(message)
        except RuntimeError:  # it has waited until it was closed
            if self._is_moved:
                raise ClientDisconnected from None
            raise

    async def receive(self) -> Any:
        message = await super().receive()
        if message["type"] == "websocket.receive" and not self.may_act():
            self._move()
            return _gone()
        return message

    def _move(self) -> None:
        if self._is_moved:
            return
        self._is_moved = True
        self.stop_keepalive()
        while not self.queue.empty():
            self.queue.get_nowait()
        self.queue.put_nowait(_gone())
        if self.close_sent or self.initial_response is not None or self.transport.is_closing():
            return  # it has ended, or has its answer
        if not self.handshake_complete:
            self.transport.close()
            return
        self._close()
        self.writable.set()  # whoever waits to send gets to know

    def _close(self) -> None:
        self.conn.send_close(SERVICE_RESTART, MOVED)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()  # the peer's answer
        self.close_timer = self.loop.call_later(CLOSE_S, self.transport.abort)

    def _refuse(self, answer: Answer) -> None:
        headers = Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers])
        self.conn.send_response(Response(answer.status, HTTPStatus(answer.status).phrase, headers, answer.body))
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.handshake_complete = self.close_sent = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": 1006})
        self.transport.close()


def _gone() -> Any:
    return {"type": "websocket.disconnect", "code": SERVICE_RESTART, "reason": MOVED}
