"""One client: a socket's life from the dial to the end, without a task of its own.

Theory of operation. The agenda calls `dial`; the poller calls `on_ready`; what comes of it goes to the crowd, which
decides when to dial again. On loopback the kernel has connected by the time `connect` returns, so the handshake is sent
at once, and writing is watched only where that was too early.

    idle --dial--> handshake unsent --> awaiting the answer --101--> open --> idle
                        |  refused          |  4xx, 5xx: denied        |  close, EOF, reset: lost
                        +--> idle: failed   +--> idle: denied, failed  +--> idle

Rules: exactly one of `admitted`, `denied`, `failed` follows each dial, then at most one `lost` an admission; the
socket is closed before the crowd hears of it. `leave` and `reset` tell the crowd nothing: it asked for them.
"""

import base64
import contextlib
import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from herdgate_loadtest.engine.answer import NO_ANSWER, Denial, denial_of_close, denial_of_response
from herdgate_loadtest.engine.dialer import OUR_FAULTS, Dialer, hang_up, reset
from herdgate_loadtest.engine.frames import Frame, Opcode, client_frame, close_payload, parse_close, parse_frame
from herdgate_loadtest.engine.wire import Handshake, Response, check_upgrade, parse_response
from herdgate_loadtest.errors import WireError

if TYPE_CHECKING:
    import random
    import socket
    from collections.abc import Callable, Sequence

    from herdgate_loadtest.engine.behaviour import Behaviour
    from herdgate_loadtest.engine.poller import Poller
    from herdgate_loadtest.engine.target import Target

__all__ = ["Client", "Listener", "Shared"]

_READ_SIZE = 16 * 1024
_GOING_AWAY, _SERVICE_RESTART = 1001, 1012
_UNAVAILABLE = 503
_NOT_YET = frozenset((errno.EAGAIN, errno.ENOTCONN))  # while connecting, systems say one or the other
_WORDS = {errno.ECONNREFUSED: "refused", errno.ECONNRESET: "reset", errno.EPIPE: "reset", errno.ETIMEDOUT: "timeout"}


class Listener(Protocol):
    """Who hears what becomes of a client."""

    def admitted(self, client: "Client") -> None:
        """The answer was a valid 101."""

    def denied(self, client: "Client", denial: Denial) -> None:
        """The answer was a whole HTTP refusal."""

    def failed(self, client: "Client", why: str, *, ours: bool) -> None:
        """There was no orderly answer. `ours`: because this machine has run out of something."""

    def lost(self, client: "Client", denial: Denial) -> None:
        """An open socket has ended, with a close frame (read as a denial) or without (status 0)."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all clients of a crowd have in common."""

    listener: Listener
    poller: "Poller"
    dialer: Dialer
    routes: "Sequence[tuple[Target, Handshake]]"
    rng: "random.Random"
    failover: bool = False
    moves_on: bool = False
    heard: "Callable[[bytes], None] | None" = None


class Client:
    """One client.

    Attributes:
        number: 0, 1, ... within the crowd.
        behaviour: how it comes back.
        ticket: shown with the next try.
        tries: dials since it was last cut off.
        start: intended moment of its first try since then (monotonic seconds); None: it was not cut off.
        due: intended moment of the current or next try.
        admitted_at: when the 101 came, while it is in.
    """

    __slots__ = (
        "_key",
        "_moves",
        "_open",
        "_shared",
        "_sock",
        "_unread",
        "_unsent",
        "admitted_at",
        "behaviour",
        "due",
        "number",
        "start",
        "ticket",
        "tries",
    )

    def __init__(self, number: int, behaviour: "Behaviour", shared: Shared) -> None:
        self.number = number
        self.behaviour = behaviour
        self.ticket: str | None = None
        self.tries = 0
        self.start: float | None = None
        self.due = 0.0
        self.admitted_at: float | None = None
        self._shared = shared
        self._moves = 0
        self._sock: socket.socket | None = None
        self._open = False
        self._key = b""
        self._unsent = b""
        self._unread = b""

    def dial(self) -> None:
        """Begin a try."""
        shared = self._shared
        turns = self._moves if shared.failover else self.tries
        target, handshake = shared.routes[(self.number + turns) % len(shared.routes)]
        self.tries += 1
        self._key = base64.b64encode(shared.rng.randbytes(16))
        try:
            self._sock = shared.dialer.open(target, self.number)
            shared.poller.watch(self._sock, self)
            self._unsent = handshake.build(self.number, self._key, self.ticket)
            if not self._flush(self._sock):
                shared.poller.set_writing(self._sock, self, writing=True)
        except OSError as error:
            self._broken(error)

    def on_ready(self) -> None:
        """Serve the socket. Called by the poller, sometimes after the socket has gone."""
        sock, data = self._sock, None
        if sock is None:
            return
        try:
            if not self._unsent:
                data = sock.recv(_READ_SIZE)
            elif self._flush(sock):
                self._shared.poller.set_writing(sock, self, writing=False)
        except BlockingIOError:
            return
        except OSError as error:
            self._broken(error)
            return
        if data is not None:
            self._received(data)

    def leave(self) -> None:
        """Say goodbye (close 1001), if open, and hang up."""
        goodbye = self._frame(Opcode.CLOSE, close_payload(_GOING_AWAY)) if self._open else b""
        if (sock := self._release()) is not None:
            hang_up(sock, goodbye)

    def reset(self) -> None:
        """Hang up with a RST."""
        if (sock := self._release()) is not None:
            reset(sock)

    def say(self, text: bytes) -> bool:
        """Send a text message; False: there is no open socket, or no room in it."""
        if not self._open or self._sock is None:
            return False
        frame = self._frame(Opcode.TEXT, text)
        try:
            return self._sock.send(frame) == len(frame)
        except OSError:  # if it is a reset, the next read will show
            return False

    def give_up(self) -> None:
        """The answer took too long: end the try as failed."""
        self._fail("timeout")

    def _flush(self, sock: "socket.socket") -> bool:
        """Send what is left of the handshake; False: the socket must become writable first."""
        try:
            sent = sock.send(self._unsent)
        except OSError as error:
            if error.errno in _NOT_YET:
                return False
            raise
        self._unsent = self._unsent[sent:]
        return not self._unsent

    def _received(self, data: bytes) -> None:
        ended = not data
        if self._unread:
            data = self._unread + data
        try:
            if self._open:
                self._read_frames(data, ended=ended)
            else:
                self._read_answer(data, ended=ended)
        except WireError as error:
            self._fail(str(error))

    def _read_answer(self, data: bytes, *, ended: bool) -> None:
        response = parse_response(data, ended=ended)
        if response is None:
            self._unread = data
        elif response.status == 101:
            self._enter(response)
        elif response.status >= 400:
            self._drop()
            self._moves += self._shared.moves_on and response.status == _UNAVAILABLE
            denial = denial_of_response(response.status, response.headers, response.body)
            self._shared.listener.denied(self, denial)
        else:
            raise WireError(f"the answer is a {response.status}")

    def _enter(self, response: Response) -> None:
        check_upgrade(response, self._key)
        self._open = True
        self._key = self._unread = b""
        self._shared.listener.admitted(self)
        if response.rest:
            self._read_frames(response.rest, ended=False)

    def _read_frames(self, data: bytes, *, ended: bool) -> None:
        at, heard = 0, self._shared.heard
        while (frame := parse_frame(data, at)) is not None:
            at = frame.end
            if frame.opcode == Opcode.CLOSE:
                self._closed(frame)
                return
            if frame.opcode == Opcode.PING:
                self._pong(frame)
            elif heard is not None and frame.opcode in {Opcode.TEXT, Opcode.BINARY}:
                heard(frame.payload)
        self._unread = data[at:]
        if ended:
            raise WireError("the connection ended without a close frame")

    def _pong(self, frame: Frame) -> None:
        if self._sock is not None:
            with contextlib.suppress(OSError):  # a full buffer, or a reset that the next read will show
                self._sock.send(self._frame(Opcode.PONG, frame.payload))

    def _closed(self, frame: Frame) -> None:
        code, reason = parse_close(frame.payload)
        if (sock := self._release()) is not None:
            hang_up(sock, self._frame(Opcode.CLOSE, frame.payload[:2]))
        self._moves += self._shared.moves_on and code == _SERVICE_RESTART
        self._shared.listener.lost(self, denial_of_close(code, reason))

    def _broken(self, error: OSError) -> None:
        why = _WORDS.get(error.errno or 0) or errno.errorcode.get(error.errno or 0, str(error))
        self._fail(why, ours=error.errno in OUR_FAULTS)

    def _fail(self, why: str, *, ours: bool = False) -> None:
        was_open = self._open
        self._moves += 1
        if (sock := self._release()) is not None:
            sock.close()
        if was_open:
            self._shared.listener.lost(self, NO_ANSWER)
        else:
            self._shared.listener.failed(self, why, ours=ours)

    def _drop(self) -> None:
        if (sock := self._release()) is not None:
            sock.close()

    def _release(self) -> "socket.socket | None":
        """Forget the socket and all that was on its way; the caller closes it."""
        sock, self._sock = self._sock, None
        self._open = False
        self._unsent = self._unread = b""
        if sock is not None:
            self._shared.poller.forget(sock)
        return sock

    def _frame(self, opcode: Opcode, payload: bytes) -> bytes:
        return client_frame(opcode, payload, self._shared.rng.randbytes(4))
