"""What is open, oldest first; and how many clients were cut off of late."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterator
from heapq import merge
from typing import Protocol

from herdgate_gateway.recall import Inviting

__all__ = ["Cuts", "Movable", "OpenSockets", "Register"]

REMEMBERED_S = 30


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


class Cuts:
    """Counts clients that vanish without a goodbye, by the second."""

    def __init__(self) -> None:
        self._seconds: deque[tuple[int, int]] = deque()

    def note(self, now: float) -> None:
        """One more. `now`: monotonic seconds."""
        second = int(now)
        if self._seconds and self._seconds[-1][0] == second:
            self._seconds[-1] = (second, self._seconds[-1][1] + 1)
        else:
            self._seconds.append((second, 1))
        self._drop(now)

    def recent(self, now: float) -> int:
        """In the last 30 s."""
        self._drop(now)
        return sum(count for _, count in self._seconds)

    def _drop(self, now: float) -> None:
        while self._seconds and self._seconds[0][0] < now - REMEMBERED_S:
            self._seconds.popleft()


class Register:
    """What the relays of messages of one gateway have in common, however often they are made anew.

    Attributes:
        bridges: what is open, oldest first.
        cuts: clients that vanished.
        is_closing: handshakes that wait for a worker are refused.
    """

    def __init__(self) -> None:
        self.bridges: dict[Movable, None] = {}
        self.cuts = Cuts()
        self.is_closing = asyncio.Event()
