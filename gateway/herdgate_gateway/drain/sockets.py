"""What is open, oldest first; and how many clients have vanished of late: one by one, or most of them at once."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from heapq import merge
from typing import Protocol

from herdgate_gateway.recall import Inviting

__all__ = ["Cuts", "Movable", "OpenSockets", "Register"]

REMEMBERED_S = 30

MASS = 100
"""Clients, and half of all: fewer are an office that has lost its line."""

MASS_S = 2.0

_logger = logging.getLogger("herdgate.gateway")


class Movable(Protocol):
    """A relayed socket, of either relay."""

    @property
    def age_s(self) -> float:
        """Seconds since it was opened."""
        ...

    @property
    def is_leaving(self) -> bool:
        """True once it has begun to end."""
        ...

    @property
    def invite(self) -> Inviting | None:
        """Calls its client back; None: nobody can."""
        ...

    def close(self, code: int, reason: str, message: str | None = None) -> None:
        """Close it, with a text message before that, if there is a place for one; harmless to repeat."""
        ...

    def abort(self) -> None:
        """Cut it; harmless once it is over."""
        ...


class OpenSockets:
    """Those of both relays.

    Args:
        kinds: what is open, of each relay, oldest first.
    """

    def __init__(self, *kinds: Callable[[], Collection[Movable]]) -> None:
        self._kinds = kinds

    def __len__(self) -> int:
        return sum(len(kind()) for kind in self._kinds)

    def __iter__(self) -> Iterator[Movable]:
        """Oldest first, as of now."""
        return iter(tuple(merge(*(tuple(kind()) for kind in self._kinds), key=lambda socket: -socket.age_s)))


@dataclass(slots=True)
class _Second:
    """One of monotonic time, in which clients have vanished.

    Attributes:
        before: sockets that were open at the first of them.
    """

    number: int
    before: int
    gone: int = 0


class Cuts:
    """Counts clients that vanish without a close frame, by the second, and says so if half of all do within two.

    Args:
        open_now: tells how many sockets are open.
    """

    def __init__(self, open_now: Callable[[], int]) -> None:
        self._open_now = open_now
        self._seconds: deque[_Second] = deque()
        self._is_mass = False

    def note(self, now: float) -> None:
        """One more, in the running loop. `now`: monotonic seconds."""
        if not self._seconds or self._seconds[-1].number != int(now):
            self._seconds.append(_Second(int(now), self._open_now()))
        self._seconds[-1].gone += 1
        self._drop(now)
        gone, before = self._since(now - 1)
        if gone >= MASS and 2 * gone >= before and not self._is_mass:
            self._is_mass = True
            asyncio.get_running_loop().call_later(MASS_S, self._say_mass, now)

    def recent(self, now: float) -> int:
        """In the last 30 s."""
        self._drop(now)
        return sum(second.gone for second in self._seconds)

    def _say_mass(self, began: float) -> None:
        """Once for all that were part of it."""
        self._is_mass = False
        gone, before = self._since(began - 1)
        _logger.warning(
            "mass_disconnect: %d of %d clients were gone at once, without a close frame: who comes back is let in at"
            " the rate, and told when",
            gone,
            before,
        )

    def _since(self, moment: float) -> tuple[int, int]:
        """How many have vanished since the second of this moment, and how many were open at its first."""
        seconds = [second for second in self._seconds if second.number >= int(moment)]
        return sum(second.gone for second in seconds), seconds[0].before if seconds else 0

    def _drop(self, now: float) -> None:
        while self._seconds and self._seconds[0].number < now - REMEMBERED_S:
            self._seconds.popleft()


class Register:
    """What the relays of messages of one gateway have in common, however often they are made anew.

    Args:
        open_now: tells how many sockets are open, of both relays.

    Attributes:
        bridges: what is open, oldest first.
        cuts: clients that vanished.
        is_closing: handshakes that wait for a worker are refused.
    """

    def __init__(self, open_now: Callable[[], int]) -> None:
        self.bridges: dict[Movable, None] = {}
        self.cuts = Cuts(open_now)
        self.is_closing = asyncio.Event()
