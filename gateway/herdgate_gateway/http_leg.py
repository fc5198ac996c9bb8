"""The client's connection until it becomes a WebSocket: uvicorn's HTTP protocol, for peers nobody has vetted.

What it adds:
- a deadline for the head of a request, and a cap on its size, which the parser does not have;
- an end to the connection of a request whose body has not come whole when it is answered;
- no line in the log for each client;
- no cycle left behind. It and its parser hold each other; only a garbage collection would free them, and one over the
  sockets of a crowd stops the process for half a second, so that it is made rare (`herdgate_gateway.serve`).

Built on uvicorn 0.54 (the class below it is not its public API).
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from herdgate_gateway.quiet import QUIET

__all__ = ["HEAD_S", "MOST_HEAD", "HttpLeg"]

HEAD_S = 5.0
"""Seconds a client has for the head of its request."""

MOST_HEAD = 64 * 1024
"""Bytes of it."""

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class HttpLeg(HttpToolsProtocol):
    """The class for `uvicorn.Config(http=...)`."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.logger = QUIET
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin_head()

    def on_message_begin(self) -> None:
        self._begin_head()
        super().on_message_begin()

    def data_received(self, data: bytes) -> None:
        if self._head_timer is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD:
                self.transport.write(_TOO_LARGE)
                self.transport.close()
                return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        self._end_head()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.more_body:  # of no use to anybody here, and never to be taken for the next request
            self.transport.close()

    def handle_websocket_upgrade(self) -> None:
        if self.parser.get_http_version() != "1.1":  # the WebSocket protocol would not be told (RFC 6455 section 4.1)
            self.send_400_response("a handshake is HTTP/1.1")
            return
        super().handle_websocket_upgrade()
        self._let_go()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._let_go()

    def _begin_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_S, self.transport.abort)

    def _end_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer, self._head_bytes = None, 0

    def _let_go(self) -> None:
        self._end_head()
        without_parser: Any = None
        self.parser = without_parser
