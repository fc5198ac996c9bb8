"""Sockets whose clients were sent their last bytes, a close frame among them, and still have to answer it.

Closed at once, a socket answers what still comes with a reset, and a client that is hit by it before it has read the
frame never learns why. So our side of it is ended, behind the frame and in the same packet, and the socket is kept.

Rules: each for `LINGER_S`, or until there are too many, then the oldest goes first. Nobody waits for the answers: to
watch for them would cost as much as all the rest of a refusal.
"""

import asyncio
from collections import deque

from herdgate_gateway.descriptors import most_lingering
from herdgate_gateway.front_door.bare_socket import BareSocket

__all__ = ["LINGER_S", "Lingering"]

LINGER_S = 1.0
"""Seconds a client has to answer a close frame."""


class Lingering:
    """Owns what is added to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._most = most_lingering()
        self._kept: deque[tuple[BareSocket, float]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, sock: BareSocket) -> None:
        """Keep this one, on which no more is said, for a while."""
        if len(self._kept) >= self._most:
            self._kept.popleft()[0].close()
        self._kept.append((sock, self._loop.time() + LINGER_S))
        if self._timer is None:
            self._timer = self._loop.call_later(LINGER_S, self._sweep)

    def close(self) -> None:
        """Close all."""
        for sock, _ in self._kept:
            sock.close()
        self._kept.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _sweep(self) -> None:
        now, self._timer = self._loop.time(), None
        while self._kept and self._kept[0][1] <= now:
            self._kept.popleft()[0].close()
        if self._kept:
            self._timer = self._loop.call_at(self._kept[0][1], self._sweep)
