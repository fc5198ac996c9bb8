"""Sockets through a proxy: opened, and talked over, where each message has to come back as it went.

Rules: a socket counts as open once its 101 is right. A talk sends its next message when the last one is back, each
message is another one, and only a whole equal echo counts.
"""

import base64
import random
import select
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from herdgate_loadtest.bench.sides.visits import SOURCES
from herdgate_loadtest.demo.process import HOST
from herdgate_loadtest.engine.dialer import Dialer
from herdgate_loadtest.engine.frames import Opcode, client_frame, parse_frame
from herdgate_loadtest.engine.target import Target
from herdgate_loadtest.engine.wire import Handshake, check_upgrade, parse_response
from herdgate_loadtest.errors import CrowdError, WireError

__all__ = ["open_sockets", "talk"]

_AT_ONCE = 64
_TIMEOUT_S = 20.0
_READ_SIZE = 256 * 1024
_DIFFERENT = 8  # messages of a talk, in turn


@contextmanager
def open_sockets(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Sockets through a proxy on a port of 127.0.0.1; they are closed with the block.

    Raises:
        CrowdError: one is not let in.
    """
    with ExitStack() as stack:
        sockets: list[socket.socket] = []
        while len(sockets) < count:
            sockets += _open(stack, port, min(_AT_ONCE, count - len(sockets)), len(sockets))
        yield sockets


def _open(stack: ExitStack, port: int, count: int, first: int) -> list[socket.socket]:
    target, dialer = Target.of(f"ws://{HOST}:{port}/echo"), Dialer(SOURCES)
    handshake = Handshake(target.host, target.path)
    opening = []
    try:
        for number in range(first, first + count):
            sock, key = stack.enter_context(dialer.open(target, number)), base64.b64encode(random.randbytes(16))
            sock.settimeout(_TIMEOUT_S)
            opening.append((sock, key))
            sock.sendall(handshake.build(number, key))
    except OSError as error:
        raise CrowdError(f"a socket could not be opened ({error}): run it again") from error
    for sock, key in opening:
        _check_open(sock, key)
    return [sock for sock, _ in opening]


def _check_open(sock: socket.socket, key: bytes) -> None:
    data = b""
    try:
        while (response := parse_response(data)) is None:
            more = sock.recv(_READ_SIZE)
            data += more
            if not more:
                raise WireError("the connection ended")
        if response.status != 101:
            raise WireError(f"the answer is a {response.status}")
        check_upgrade(response, key)
        if response.rest:
            raise WireError("somebody speaks unasked")
    except (WireError, OSError) as error:
        raise CrowdError(f"a socket was not let in ({error}): run it again") from error


class _Talk:
    """One socket's messages."""

    def __init__(self, sock: socket.socket, size: int) -> None:
        payloads = [random.randbytes(size) for _ in range(_DIFFERENT)]
        self._frames = [(client_frame(Opcode.BINARY, payload, random.randbytes(4)), payload) for payload in payloads]
        self._number = 0
        self._due = b""  # what has to come back
        self._unread = b""
        self.sock = sock
        self.unsent = b""
        self.is_watched = False  # for room to send

    def say(self) -> None:
        """Begin with the next message."""
        self.unsent, self._due = self._frames[self._number % _DIFFERENT]
        self._number += 1
        self.send()

    def send(self) -> None:
        """Send what is left of it."""
        with suppress(BlockingIOError):
            self.unsent = self.unsent[self.sock.send(self.unsent) :]

    def hear(self) -> bool:
        """Read; True: the message is back.

        Raises:
            WireError: something else came.
        """
        data = self.sock.recv(_READ_SIZE)
        if not data:
            raise WireError("the connection ended")
        self._unread = data = self._unread + data if self._unread else data
        is_back, at = False, 0
        while (frame := parse_frame(data, at)) is not None:
            at = frame.end
            if frame.opcode == Opcode.PING:  # stock uvicorn looks after its sockets
                self.sock.send(client_frame(Opcode.PONG, frame.payload, random.randbytes(4)))
            elif is_back or frame.opcode != Opcode.BINARY or not frame.final or frame.payload != self._due:
                raise WireError("a message did not come back as it went")
            else:
                is_back = True
        self._unread = data[at:]
        return is_back


def talk(sockets: Sequence[socket.socket], size: int, seconds: float) -> tuple[int, list[str]]:
    """Send messages of `size` bytes over each, one after the other; wait for the last ones.

    Returns:
        How many came back, and what went wrong, which ends it early.
    """
    with select.epoll() as epoll:
        return _Talks(epoll, sockets, size).run(seconds)


class _Talks:
    """All talks of one slot."""

    def __init__(self, epoll: select.epoll, sockets: Sequence[socket.socket], size: int) -> None:
        self._epoll = epoll
        self._talks = {sock.fileno(): _Talk(sock, size) for sock in sockets}
        self._waiting = self._done = 0

    def run(self, seconds: float) -> tuple[int, list[str]]:
        self._end = time.monotonic() + seconds
        try:
            for one in self._talks.values():
                one.sock.setblocking(False)
                self._epoll.register(one.sock, select.EPOLLIN)
                self._say(one)
            while self._waiting:
                self._serve()
        except (WireError, OSError) as error:
            return self._done, [str(error)]
        return self._done, []

    def _serve(self) -> None:
        ready = self._epoll.poll(_TIMEOUT_S)
        if not ready:
            raise WireError(f"no echo of {self._waiting} messages within {_TIMEOUT_S:g} s")
        for descriptor, _ in ready:
            self._go_on(self._talks[descriptor])

    def _say(self, one: _Talk) -> None:
        one.say()
        self._waiting += 1
        self._watch(one)

    def _go_on(self, one: _Talk) -> None:
        if one.unsent:
            one.send()
            self._watch(one)
        elif one.hear():
            self._done += 1
            self._waiting -= 1
            if time.monotonic() < self._end:
                self._say(one)

    def _watch(self, one: _Talk) -> None:
        if bool(one.unsent) != one.is_watched:
            one.is_watched = bool(one.unsent)
            self._epoll.modify(one.sock, select.EPOLLIN | (select.EPOLLOUT if one.unsent else 0))
