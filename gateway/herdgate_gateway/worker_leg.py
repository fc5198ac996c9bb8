"""The leg between the gateway and one worker: a connection of its own, dialled once, never used again.

    WorkerLeg(...) -> open() -> receive() / send() ... -> close() -> abort()

The protocol is that of `websockets` without its I/O; what is here is the connection below it. Rules:
- the request is the caller's to the byte: path, headers, one `Host`; no subprotocol header unless one was offered, no
  extension, and no ping that was not asked for;
- what the worker sends is held up to `HIGH_WATER` bytes or `max_queue` messages, then the socket is read no further:
  at most that, one message, and one read are in memory;
- a text message that is no UTF-8 ends the leg, and so does a message or a frame over its limit;
- `abort` is synchronous, harmless to repeat, and closes the socket whatever state the leg is in, being dialled too.
"""

import asyncio
import errno
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import cast

from websockets.client import ClientProtocol
from websockets.datastructures import Headers
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import WebSocketURI

from herdgate_gateway.close_codes import BAD_GATEWAY, INVALID_DATA, LOST, fit_reason
from herdgate_gateway.tcp_options import set_tcp_options

__all__ = ["OURS", "WorkerFailed", "WorkerLeg", "WorkerRefused"]

OURS = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL))
"""Errors of a dial for which the worker is not to blame."""

HIGH_WATER = 65_536
_REFUSALS = range(300, 600)


class WorkerRefused(Exception):  # noqa: N818 - an answer, and no error
    """The worker has refused the handshake.

    Attributes:
        response: its answer, with at most 1 MiB of body.
    """

    def __init__(self, response: Response) -> None:
        super().__init__(f"the worker refused with status {response.status_code}")
        self.response = response


class WorkerFailed(Exception):  # noqa: N818
    """The worker has not taken the handshake, nor refused it.

    Attributes:
        is_ours: it was not asked, for want of something here, and is not to blame.
    """

    def __init__(self, text: str, *, is_ours: bool = False) -> None:
        super().__init__(text)
        self.is_ours = is_ours


class WorkerLeg(asyncio.Protocol):
    """One WebSocket to a worker.

    Args:
        target: path and query, as they go on the request line.
        headers: the request's, without those of the handshake itself.
        subprotocols: those the client offers.
        max_message_bytes: the longest message from the worker.
        max_fragment_bytes: the longest frame.
        max_queue: messages held before the socket is read no further.

    Attributes:
        code: how the leg ended: the worker's close code, 1005 for none, 1006 for a loss or a breach; None: it has not.
        reason: the worker's words for it.
    """

    def __init__(
        self,
        target: str,
        headers: Sequence[tuple[str, str]],
        subprotocols: Sequence[str],
        *,
        max_message_bytes: int,
        max_fragment_bytes: int,
        max_queue: int,
    ) -> None:
        self._target, self._headers = target, headers
        self._ws = ClientProtocol(
            WebSocketURI(secure=False, host="", port=0, path="", query=""),  # the request is made below
            subprotocols=[Subprotocol(name) for name in subprotocols] or None,
            max_size=(max_message_bytes, max_fragment_bytes),
        )
        self._offered = ", ".join(subprotocols)
        self._max_queue = max_queue
        loop = asyncio.get_running_loop()
        self._response: asyncio.Future[Response] = loop.create_future()
        self._lost: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._aborted = self._discarding = self._reading_paused = False
        self._messages: deque[tuple[str | bytes, int]] = deque()  # and their bytes
        self._held = 0
        self._opcode = Opcode.TEXT
        self._parts = bytearray()  # one buffer, so that a million tiny fragments cost no more than their bytes
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self.code: int | None = None
        self.reason = ""

    @property
    def subprotocol(self) -> str | None:
        """The one the worker has chosen."""
        return self._ws.subprotocol

    async def open(self, host: str, port: int) -> Response:
        """Connect and shake hands. The caller bounds the time, and aborts the leg whatever comes of it.

        Returns:
            The worker's 101.

        Raises:
            WorkerRefused: it said no.
            WorkerFailed: nobody is there, or what is there does not speak the protocol.
        """
        try:
            await asyncio.get_running_loop().create_connection(lambda: self, host, port)
        except OSError as error:
            raise WorkerFailed(f"cannot connect: {error}", is_ours=error.errno in OURS) from None
        self._ws.send_request(Request(self._target, self._request_headers()))
        self._flush()
        return await self._response

    async def receive(self) -> str | bytes | None:
        """The next message, or None once the leg has ended and all that came before is read."""
        while not self._messages:
            if self.code is not None:
                return None
            self._readable.clear()
            await self._readable.wait()
        message, size = self._messages.popleft()
        self._held -= size
        self._regulate()
        return message

    def write(self, message: str | bytes) -> bool:
        """Send a message, or nothing if the leg has ended. False: wait with `drain` before the next one."""
        if self._ws.state is State.OPEN:
            if isinstance(message, str):
                self._ws.send_text(message.encode())
            else:
                self._ws.send_binary(message)
            self._flush()
        return self._writable.is_set()

    async def drain(self) -> None:
        """Wait until the worker has taken what was written, or is gone."""
        await self._writable.wait()

    async def close(self, code: int | None, reason: str, within_s: float) -> None:
        """Say goodbye if that is still to be said, and wait until the worker has hung up, or the time is up."""
        self._messages.clear()
        self._discarding = True
        if self._ws.state is State.OPEN:
            self._ws.send_close(code, fit_reason(reason) if code else "")
            self._flush()
        self._regulate()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await asyncio.shield(self._lost)

    def abort(self) -> None:
        """Hang up at once."""
        self._aborted = True
        if self._transport is not None:
            self._transport.abort()
        self._response.cancel()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self._transport = cast(asyncio.Transport, transport)
        if self._aborted:
            self._transport.abort()
        else:
            set_tcp_options(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        """Bytes from the worker."""
        self._ws.receive_data(data)
        self._advance()

    def eof_received(self) -> None:
        """The worker has hung up, which also ends a refusal without a length."""
        self._ws.receive_eof()
        self._advance()

    def connection_lost(self, error: Exception | None) -> None:
        """Nothing more will come."""
        self._ws.receive_eof()
        self._advance()
        self._end(LOST, "")
        self._writable.set()
        if not self._response.done():
            self._response.set_exception(WorkerFailed("the worker hung up"))
        self._lost.set_result(None)

    def pause_writing(self) -> None:
        """The worker does not take what it is sent."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It does again."""
        self._writable.set()

    # Behind them.

    def _request_headers(self) -> Headers:
        own = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13")]
        own.append(("Sec-WebSocket-Key", self._ws.key))
        if self._offered:
            own.append(("Sec-WebSocket-Protocol", self._offered))
        return Headers([*self._headers, *own])

    def _advance(self) -> None:
        for event in self._ws.events_received():
            if isinstance(event, Response):
                self._read_answer(event)
            elif isinstance(event, Frame) and self.code is None:
                self._take(event)
        self._flush(only_pongs=self._ws.state is State.OPEN)
        if not self._response.done() and self._ws.handshake_exc is not None:
            self._response.set_exception(WorkerFailed(f"no HTTP answer: {self._ws.handshake_exc.__cause__}"))
        if self._ws.parser_exc is not None:
            self._end(LOST if isinstance(self._ws.parser_exc, EOFError) else BAD_GATEWAY, "")
        self._regulate()

    def _read_answer(self, response: Response) -> None:
        if self._response.done():
            return
        error = self._ws.handshake_exc
        if error is None:
            self._response.set_result(response)
        elif response.status_code in _REFUSALS:
            self._response.set_exception(WorkerRefused(response))
        else:
            self._response.set_exception(WorkerFailed(f"no valid handshake: {error}"))

    def _take(self, frame: Frame) -> None:
        if frame.opcode is Opcode.CLOSE:
            close = self._ws.close_rcvd
            assert close is not None
            self._end(close.code, close.reason)
        elif frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT) and not self._discarding:
            if frame.opcode is not Opcode.CONT:
                self._opcode = frame.opcode
            self._parts += frame.data
            if frame.fin:
                self._finish_message()

    def _finish_message(self) -> None:
        data, self._parts = self._parts, bytearray()
        try:
            message = data.decode() if self._opcode is Opcode.TEXT else bytes(data)
        except UnicodeDecodeError:
            self._ws.fail(INVALID_DATA, "not UTF-8")
            self._end(BAD_GATEWAY, "")
            return
        self._messages.append((message, len(data)))
        self._held += len(data)
        self._readable.set()

    def _end(self, code: int, reason: str) -> None:
        if self.code is None:
            self.code, self.reason = code, reason
            self._readable.set()

    def _flush(self, *, only_pongs: bool = False) -> None:
        writes = self._ws.data_to_send()
        if self._transport is None or (only_pongs and not self._writable.is_set()):
            return  # a worker that pings and does not read gets no pile of pongs (RFC 6455 section 5.5.3)
        for data in writes:
            if data:  # an empty one asks for the end of the stream, which is the socket's end here
                self._transport.write(data)

    def _regulate(self) -> None:
        """Read from the worker as long as there is room."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        is_full = self._held >= HIGH_WATER or len(self._messages) >= self._max_queue
        if is_full and not self._discarding and not self._reading_paused:
            self._reading_paused = True
            transport.pause_reading()
        elif self._reading_paused and (self._discarding or not is_full):
            self._reading_paused = False
            transport.resume_reading()
