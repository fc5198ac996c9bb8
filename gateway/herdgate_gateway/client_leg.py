"""The client's leg: uvicorn's WebSocket protocol, for a peer that nobody has vetted.

    Config(app, ws=client_leg_class(...), ws_ping_interval=None, ws_per_message_deflate=False)

What it adds:
- a limit on one frame, beside uvicorn's on the whole message; and fragments are gathered in one buffer, as uvicorn's
  list of them grows for ever on empty ones;
- no pile of pongs for a client that pings and does not read (RFC 6455 section 5.5.3 asks for the latest only);
- bytes are parsed slice by slice, and no further while the app does not take what they held: one read may be thousands
  of small messages, or, compressed, a thousand times its size;
- an answer to a handshake with a body, or with too long a header, which uvicorn leaves waiting for ever;
- the reason for a client that breaks the protocol or a limit arrives, for the rest of what it sends is read;
- text that is no UTF-8 is such a breach, and not an error with a traceback in the log;
- TCP options (`tcp_options`), a deadline for the closing handshake, and a `ClientLine` for the app, which also tells of
  what is no message: pings, pongs, fragments.

Built on uvicorn 0.54 (the classes below it are not its public API).
"""

import asyncio
from typing import Any, ClassVar, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from herdgate.reception import ADMITTED
from herdgate_gateway.client_line import EXTENSION, ClientLine
from herdgate_gateway.close_codes import INVALID_DATA
from herdgate_gateway.quiet import QUIET
from herdgate_gateway.tcp_options import set_tcp_options

__all__ = ["client_leg_class"]

SLICE = 4_096
"""Bytes parsed at once."""

_WHY = b"this handshake cannot be read: it has a body, or headers that are too long or too many\n"
_BAD_REQUEST = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"
) % (len(_WHY), _WHY)


def client_leg_class(
    *, max_message_bytes: int, max_fragment_bytes: int, close_s: float
) -> type[WebSocketsSansIOProtocol]:
    """The class for `uvicorn.Config(ws=...)`.

    Args:
        max_message_bytes: the longest message.
        max_fragment_bytes: the longest frame.
        close_s: seconds the client has to answer a close frame.
    """
    settings = {"max_size": (max_message_bytes, max_fragment_bytes), "close_s": close_s}
    return cast("type[WebSocketsSansIOProtocol]", type("ClientLeg", (_ClientLeg,), settings))


class _ClientLeg(WebSocketsSansIOProtocol):
    max_size: ClassVar[tuple[int, int]]
    close_s: ClassVar[float]

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.close_timeout = self.close_s
        self.logger = self.conn.logger = QUIET
        self.conn.max_message_size, self.conn.max_fragment_size = self.max_size
        self._held = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._line = ClientLine(self.transport)
        connection = transport.get_extra_info("socket")
        if connection is not None:
            set_tcp_options(connection)

    def connection_lost(self, exc: Exception | None) -> None:
        self._held.clear()
        super().connection_lost(exc)
        self._line.lost()
        permit = self.app_state.get(ADMITTED)
        if permit is not None:  # admitted before the app was called, which may never have been
            permit.release()

    def data_received(self, data: bytes) -> None:
        self._line.heard_at = self.loop.time()
        if self.conn.parser_exc is None:
            self._held += data
            self._parse()

    def handle_cont(self, event: Frame) -> None:
        first: bytes | bytearray = self.frames[0]
        whole: Any = first if isinstance(first, bytearray) else bytearray(first)
        whole += event.data
        self.frames = [whole]
        if event.fin:
            self.send_receive_event_to_app()

    def send_receive_event_to_app(self) -> None:
        whole = b"".join(self.frames)  # bytes, as ASGI asks for, and not the buffer they were gathered in
        if self.curr_msg_data_type == "text" and not _is_utf_8(whole):
            self.conn.fail(INVALID_DATA, "not UTF-8")
            self.handle_parser_exception()
            return
        self.frames = [whole]
        super().send_receive_event_to_app()

    def handle_ping(self) -> None:
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()  # dropped

    async def receive(self) -> Any:
        message = await super().receive()
        if not self.read_paused:
            self._parse()
        return message

    async def run_asgi(self) -> None:
        extensions: Any = self.scope["extensions"]
        extensions[EXTENSION] = self._line
        await super().run_asgi()

    def handle_parser_exception(self) -> None:
        """End the leg for a breach of the protocol, or of a limit.

        uvicorn closes the connection at once, which resets it if bytes are left unread, and the close frame is lost.
        Here our side of it is ended, and what the client sends is dropped until it ends the other, or its time is up.
        """
        if self.conn.close_sent is None:  # before its handshake was answered: there is nobody to tell
            self.queue.put_nowait({"type": "websocket.disconnect", "code": 1006})
            self.transport.close()
            return
        code, reason = self.conn.close_sent.code, self.conn.close_sent.reason
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self._held.clear()
        if not self.transport.can_write_eof():  # TLS
            self.transport.close()
            return
        self.transport.write_eof()
        self.close_timer = self.loop.call_later(self.close_timeout, self.transport.close)

    def _parse(self) -> None:
        while self._held and not self.read_paused:
            data = bytes(self._held[:SLICE])
            del self._held[:SLICE]
            super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self._refuse()

    def _refuse(self) -> None:
        """Answer a request that the WebSocket library cannot read: uvicorn would leave the client waiting."""
        if not self.transport.is_closing():
            self.transport.write(_BAD_REQUEST)
            self.transport.close()


def _is_utf_8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
