"""The sockets of a worker, by shard: when one is lost, only its sockets are looked at.

A socket ends with the ownership that it was accepted under, even if its shard comes back the next moment, and with its
connection, whatever its app does: it does not count any more from then on. Its app is told, and cancelled where it
takes no notice for 5 s.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Protocol

from herdgate_gateway.worker_kit.answers import Answer, misdirected
from herdgate_gateway.worker_kit.stamps import Known, Stamp

__all__ = ["Movable", "Socket", "Sockets"]

APP_S = 5.0
"""Seconds that an app has to end after its socket was closed."""

_logger = logging.getLogger("herdgate.worker")


class Movable(Protocol):
    """As `line.Line`."""

    @property
    def is_accepted(self) -> bool:
        """True from the 101 to the close."""
        ...

    def move(self, answer: Answer) -> None:
        """Close it, or answer its handshake."""
        ...

    def replace(self) -> None:
        """Close it, for there is another one instead."""
        ...

    def when_gone(self, act: Callable[[], None]) -> None:
        """Call this once it has ended; at once if it has already."""
        ...


@dataclass(eq=False, slots=True)
class Socket:
    """One socket, and the task that runs the app for it.

    Attributes:
        is_over: its shard was lost, its connection has ended, or a newer socket replaced it; it does not count.
    """

    stamp: Stamp
    line: Movable
    task: asyncio.Task[object]
    is_over: bool = False
    deadline: asyncio.TimerHandle | None = field(default=None)


class Sockets:
    """All of them.

    Attributes:
        count: those that are not over. May be read in any thread.
    """

    def __init__(self) -> None:
        self._by_shard: dict[int, set[Socket]] = {}
        self.count = 0

    def weights(self) -> Mapping[int, int]:
        """How many there are, by shard; shards without any are left out."""
        return {shard: len(sockets) for shard, sockets in self._by_shard.items()}

    @contextmanager
    def entered(self, stamp: Stamp, line: Movable) -> Iterator[Socket]:
        """One more, as long as the block runs in the present task."""
        task = asyncio.current_task()
        assert task is not None
        socket = Socket(stamp, line, task)
        self._by_shard.setdefault(stamp.shard, set()).add(socket)
        self.count += 1
        line.when_gone(partial(self._end, socket))
        try:
            yield socket
        finally:
            self._end(socket)
            if socket.deadline is not None:
                socket.deadline.cancel()

    def drop(self, shard: int, known: Known) -> None:
        """The shard is lost.

        Args:
            known: what handshakes that are not answered yet are told.
        """
        for socket in tuple(self._by_shard.get(shard, ())):
            self._end(socket)
            socket.line.move(misdirected(shard, known))

    def accepted_beside(self, socket: Socket) -> list[Socket]:
        """The other sockets of its connection that are in."""
        there = self._by_shard.get(socket.stamp.shard, ())
        mine = [each for each in there if each.stamp.connection_id == socket.stamp.connection_id]
        return [each for each in mine if each is not socket and each.line.is_accepted]

    def replace(self, socket: Socket) -> None:
        """A newer one of its connection is in."""
        self._end(socket)
        socket.line.replace()

    def _end(self, socket: Socket) -> None:
        """It does not count any more, and its app has a while to end; harmless to repeat."""
        if socket.is_over:
            return
        socket.is_over = True
        socket.deadline = asyncio.get_running_loop().call_later(APP_S, _cancel, socket.task)
        self.count -= 1
        there = self._by_shard[socket.stamp.shard]
        there.remove(socket)
        if not there:
            del self._by_shard[socket.stamp.shard]


def _cancel(task: asyncio.Task[object]) -> None:
    _say_cancelled()
    task.cancel()


@cache
def _say_cancelled() -> None:
    _logger.warning(
        "the app has not ended %g s after its socket was closed, and was cancelled: have it end when receive() gives "
        "websocket.disconnect (said once)",
        APP_S,
    )
