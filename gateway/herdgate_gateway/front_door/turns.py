"""TLS connections that are accepted, until their handshake begins: those that wait for their turn, or for their bytes.

    accepted -> its client has left                     closed; costs nothing of the pace
             -> first bytes here, and a turn is free    begun
             -> nothing yet: silent, up to `SILENT_S`   ... bytes come: begun, in order, as soon as a turn is free

Rules:
- a turn is what the pace gives; only a connection whose bytes are here, and whose client is still there, takes one;
- those that have spoken come before who is still to be accepted;
- as many are kept as sockets may linger, which is what descriptors are kept back for; then the longest silent one goes.
"""

import asyncio
import select
from collections import deque
from collections.abc import Callable

from herdgate_gateway.descriptors import most_lingering
from herdgate_gateway.front_door.bare_socket import BareSocket
from herdgate_gateway.front_door.pace import Pace

__all__ = ["SILENT_S", "Turns"]

SILENT_S = 5.0
"""Seconds that a connection may be silent."""

_LEFT = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR
"""What says that a client has left, whether its bytes are read or not; where there is no POLLRDHUP, POLLHUP does."""


class Turns:
    """Owns what is added to it until it is begun.

    Args:
        begin: begins a handshake on a connection.
        rate: handshakes begun per second. None: no limit.
    """

    def __init__(self, begin: Callable[[BareSocket], None], rate: float | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._begin = begin
        self._most = most_lingering()
        self._silent: dict[BareSocket, float] = {}  # and until when; the first to come is the first to go
        self._spoken: deque[BareSocket] = deque()
        self._sweeping: asyncio.TimerHandle | None = None
        self._looking: asyncio.TimerHandle | None = None
        self.set_rate(rate)

    def __len__(self) -> int:
        return len(self._silent) + len(self._spoken)

    def set_rate(self, rate: float | None) -> None:
        """Begin handshakes at this rate from now on."""
        self._pace = Pace(rate, self._loop.time()) if rate else None

    def advance(self) -> float:
        """Begin with those whose turn has come. Seconds until one more may be added; 0.0: now."""
        while not (wait_s := self._wait_s()) and self._spoken:
            self._start(self._spoken.popleft())
        return wait_s

    def add(self, accepted: BareSocket) -> None:
        """A new connection; only while there is nothing to wait for."""
        if _events(accepted):
            self._start(accepted)
        else:
            self._keep(accepted)

    def close(self) -> None:
        """Close all."""
        for sock in tuple(self._silent):
            self._drop(sock)
        while self._spoken:
            self._spoken.popleft().close()
        for timer in (self._sweeping, self._looking):
            if timer is not None:
                timer.cancel()

    def _wait_s(self) -> float:
        return 0.0 if self._pace is None else self._pace.wait_s(self._loop.time())

    def _start(self, accepted: BareSocket) -> None:
        if _events(accepted) & _LEFT:
            accepted.close()
            return
        if self._pace is not None:
            self._pace.take()
        self._begin(accepted)

    def _keep(self, accepted: BareSocket) -> None:
        if len(self) >= self._most:
            self._drop(next(iter(self._silent)))
        self._silent[accepted] = self._loop.time() + SILENT_S
        self._loop.add_reader(accepted.fileno(), self._hear, accepted)
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(SILENT_S, self._sweep)

    def _hear(self, accepted: BareSocket) -> None:
        """Something has come, if only the end."""
        del self._silent[accepted]
        self._loop.remove_reader(accepted.fileno())
        self._spoken.append(accepted)
        if self._looking is None:
            self._look()

    def _look(self) -> None:
        """Begin with those whose turn has come, and look again when the next one's has."""
        wait_s = self.advance()
        self._looking = self._loop.call_later(wait_s, self._look) if self._spoken else None

    def _sweep(self) -> None:
        now, self._sweeping = self._loop.time(), None
        for sock, until in tuple(self._silent.items()):
            if until > now:
                self._sweeping = self._loop.call_at(until, self._sweep)
                break
            self._drop(sock)

    def _drop(self, sock: BareSocket) -> None:
        del self._silent[sock]
        self._loop.remove_reader(sock.fileno())
        sock.close()


def _events(sock: BareSocket) -> int:
    """What there is on a connection, of poll(2); 0: nothing yet."""
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN | _LEFT)
    return next((event for _, event in poll.poll(0)), 0)
