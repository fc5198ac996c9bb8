"""The way to a worker: dialled once for one client, who sends its own handshake there.

    dial -> connect -> the client's request -> the worker's answer -> Upstream (its 101) | WorkerRefused | WorkerFailed

Rules:
- the worker is read no further than its 101: what came behind it is kept for the client, the rest stays where it is;
- a head has at most 64 KiB, and a refusal at most 1 MiB of body;
- a dial that fails or is cancelled leaves no socket.
"""

import asyncio
from collections.abc import Generator
from typing import cast

from websockets.exceptions import WebSocketException
from websockets.http11 import Response
from websockets.streams import StreamReader

from herdgate_gateway.close_codes import LOST, to_worker
from herdgate_gateway.routing.destination import Destination
from herdgate_gateway.splice.frames import close_frame
from herdgate_gateway.splice.handshake import Handshake, client_head, has_extension
from herdgate_gateway.tcp_options import set_tcp_options
from herdgate_gateway.worker_leg import OURS, WorkerFailed, WorkerRefused
from herdgate_gateway.workers import Assignment

__all__ = ["Upstream", "dial"]

MOST_HEAD = 64 * 1024
"""Bytes of an answer without its body."""

_REFUSALS = range(300, 600)
_INTERIM = (100, 102, 103)
_NO_HTTP = (EOFError, LookupError, NotImplementedError, ValueError, WebSocketException)


class Upstream:
    """A worker that has taken the handshake; to be joined with the client, or discarded.

    Attributes:
        transport: to the worker; it is not read.
        assignment: the client's place there.
        head: the client's 101.
        destination: the shard that the client belongs to, in a fleet with leases.
        first: what the worker has sent behind its own.
        is_extended: whether both have agreed on an extension.
    """

    __slots__ = ("_answer", "assignment", "destination", "first", "head", "is_extended", "transport")

    def __init__(self, answer: "_Answer", response: Response, assignment: Assignment) -> None:
        self._answer = answer
        self.transport = answer.transport
        self.assignment = assignment
        self.destination: Destination | None = None
        self.head = client_head(response)
        self.first = answer.rest
        self.is_extended = has_extension(response)

    @property
    def is_lost(self) -> bool:
        """True if the worker has gone since."""
        return self._answer.is_lost

    def discard(self) -> None:
        """The client has gone: say so and hang up. Instead of joining."""
        if not self.is_lost:
            self.transport.write(close_frame(to_worker(LOST), is_masked=True))
            self.transport.close()
        self.assignment.release()


async def dial(handshake: Handshake, assignment: Assignment) -> Upstream:
    """Shake hands with the worker of this assignment. The caller bounds the time, and tells the pool.

    Raises:
        WorkerRefused: it said no.
        WorkerFailed: nobody is there, or what is there does not speak the protocol.
    """
    answer = _Answer(handshake)
    worker = assignment.worker
    try:
        try:
            await asyncio.get_running_loop().create_connection(lambda: answer, worker.host, worker.port)
        except OSError as error:
            raise WorkerFailed(f"cannot connect: {error}", is_ours=error.errno in OURS) from None
        response = await answer.response
        return Upstream(answer, response, assignment)
    except BaseException:
        answer.abort()
        raise


class _Answer(asyncio.Protocol):
    """Sends the request, and reads the answer."""

    __slots__ = (
        "_aborted",
        "_handshake",
        "_head_left",
        "_parser",
        "_reader",
        "is_lost",
        "response",
        "transport",
    )

    transport: asyncio.Transport

    def __init__(self, handshake: Handshake) -> None:
        self._handshake = handshake
        self._reader = StreamReader()
        self._parser = Response.parse(self._read_line, self._reader.read_exact, self._reader.read_to_eof)
        self._head_left = MOST_HEAD
        self._aborted = self.is_lost = False
        self.response: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

    @property
    def rest(self) -> bytes:
        """What came behind the answer."""
        return bytes(self._reader.buffer)

    def abort(self) -> None:
        """Hang up at once, also if the connection is still to come."""
        self._aborted = True
        if hasattr(self, "transport"):
            self.transport.abort()
        if not self.response.cancel() and not self.response.cancelled():
            self.response.exception()  # asked for, or the loop would complain that nobody did

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self.transport = cast(asyncio.Transport, transport)
        if self._aborted:
            self.transport.abort()
            return
        set_tcp_options(transport.get_extra_info("socket"))
        self.transport.write(self._handshake.request)

    def data_received(self, data: bytes) -> None:
        """Bytes of the answer."""
        self._reader.feed_data(data)
        self._advance()

    def eof_received(self) -> None:
        """The worker has hung up, which also ends a refusal without a length."""
        self._end()

    def connection_lost(self, error: Exception | None) -> None:
        """Nothing more will come."""
        self.is_lost = True
        self._end()
        self._fail(WorkerFailed("the worker hung up"))

    def _read_line(self, most: int, error: type[Exception] = RuntimeError) -> Generator[None, None, bytearray]:
        line = yield from self._reader.read_line(min(most, self._head_left), error)
        self._head_left -= len(line)
        return line

    def _end(self) -> None:
        if not self._reader.eof:
            self._reader.feed_eof()
            self._advance()

    def _advance(self) -> None:
        if self.response.done():
            return
        try:
            next(self._parser)
        except StopIteration as parsed:
            self._take(parsed.value)
        except _NO_HTTP as error:
            self._fail(WorkerFailed(f"no HTTP answer: {error}"))

    def _take(self, response: Response) -> None:
        if response.status_code in _INTERIM:  # the answer is still to come (RFC 9110 section 15.2)
            self._parser = Response.parse(self._read_line, self._reader.read_exact, self._reader.read_to_eof)
            self._advance()
        else:
            self._read(response)

    def _read(self, response: Response) -> None:
        if response.status_code in _REFUSALS:
            self._fail(WorkerRefused(response))
            return
        fault = self._handshake.fault(response)
        if fault is None:
            self.transport.pause_reading()
            self.response.set_result(response)
        else:
            self._fail(WorkerFailed(f"no valid handshake: {fault}"))

    def _fail(self, error: Exception) -> None:
        if not self.response.done():
            self.response.set_exception(error)
