"""Who is to dial when: a heap behind a single timer of the event loop.

Rules: nobody is called early. A moment is CLOCK_MONOTONIC seconds (`time.monotonic`), never `loop.time()`, which
uvloop rounds to milliseconds and reads once per turn. At most `_SLICE` calls per turn of the loop: those who are late
keep their order and their intended moment.
"""

import heapq
import time
from collections import OrderedDict
from itertools import count
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

__all__ = ["Agenda", "Deadlines"]

_SLICE = 64  # about 5 ms of dialling
_LEAST_SLEEP_S = 0.001  # uvloop counts in milliseconds: less would spin

T = TypeVar("T")


class Agenda(Generic[T]):
    """Calls `act(item)` at its moment."""

    def __init__(self, loop: "asyncio.AbstractEventLoop", act: "Callable[[T], None]") -> None:
        self._loop = loop
        self._act = act
        self._heap: list[tuple[float, int, T]] = []
        self._order = count()
        self._timer: asyncio.Handle | None = None
        self._wakes = 0.0

    def put(self, when: float, item: T) -> None:
        """Call for `item` at `when`, monotonic seconds."""
        heapq.heappush(self._heap, (when, next(self._order), item))
        if self._timer is None or when < self._wakes:
            self._arm()

    def replace(self, entries: "Iterable[tuple[float, T]]") -> None:
        """Forget everything and take these instead."""
        self._heap = [(when, next(self._order), item) for when, item in entries]
        heapq.heapify(self._heap)
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._heap:
            return
        self._wakes = self._heap[0][0]
        sleep_s = self._wakes - time.monotonic()
        if sleep_s <= 0:
            self._timer = self._loop.call_soon(self._run)
        else:
            self._timer = self._loop.call_later(max(sleep_s, _LEAST_SLEEP_S), self._run)

    def _run(self) -> None:
        # The timer stays set while we act, so that items put meanwhile do not arm it; we do that at the end.
        self._wakes = 0.0
        now = time.monotonic()
        try:
            for _ in range(_SLICE):
                if not self._heap or self._heap[0][0] > now:
                    break
                self._act(heapq.heappop(self._heap)[2])
        finally:
            self._arm()


class Deadlines(Generic[T]):
    """Items that all get the same time: those due are always in front, so no heap and no stale entries are needed."""

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._due: OrderedDict[T, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._due)

    def __contains__(self, item: T) -> bool:
        return item in self._due

    def start(self, item: T, now: float) -> None:
        """`item` is due `after_s` from now. It must not be running already."""
        self._due[item] = now + self._after_s

    def stop(self, item: T) -> None:
        """`item` is not due any more; unknown ones are fine."""
        self._due.pop(item, None)

    def clear(self) -> None:
        """Nothing is due any more."""
        self._due.clear()

    def take_due(self, now: float) -> list[T]:
        """Remove and return whoever is due."""
        due = []
        for item, when in self._due.items():
            if when > now:
                break
            due.append(item)
        for item in due:
            del self._due[item]
        return due
