"""What gateways and workers add to the calendar: who is up, who waits in line, who has room."""

import math
from collections.abc import Sequence

from herdgate_loadtest.simulate.scenario import Worker

__all__ = ["Gateway", "Workers"]


class Gateway:
    """One gateway, which answers in the order of arrival.

    Args:
        answer_s: seconds that an answer takes it.
        max_held: handshakes that it holds at once.

    Attributes:
        held: those that it holds now.
        down_until: when it takes connections again.
    """

    def __init__(self, answer_s: float, max_held: int) -> None:
        self.held = 0
        self.down_until = 0.0
        self._answer_s = answer_s
        self._max_held = max_held
        self._free_at = 0.0

    @property
    def may_hold(self) -> bool:
        """There is room for one more to wait for its slot."""
        return self.held < self._max_held

    def queue(self, now: float) -> float:
        """One more arrival; the moment at which it is decided."""
        if not self._answer_s:
            return now
        self._free_at = max(now, self._free_at) + self._answer_s
        return self._free_at

    def die(self, now: float, until: float) -> None:
        """Be away until then, and have nobody in line afterwards."""
        self.down_until = max(self.down_until, until)
        self._free_at = now
        self.held = 0


class Workers:
    """All workers. An admission goes to the one with the fewest sockets among those with room, as in a fleet.

    Attributes:
        room: for how many there is room, in all of those that are up.
    """

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._latencies = [worker.latency_s for worker in workers]
        self._capacities = [math.inf if worker.capacity is None else worker.capacity for worker in workers]
        self._sockets = [0] * len(workers)
        self._down_until = [0.0] * len(workers)
        self._up = list(range(len(workers)))
        self.room: float = sum(self._capacities)

    def take(self) -> tuple[int, float]:
        """A worker for one more socket, and how long its set-up takes; there must be room."""
        if len(self._up) == 1:
            worker = self._up[0]
        else:
            with_room = (each for each in self._up if self._sockets[each] < self._capacities[each])
            worker = min(with_room, key=self._sockets.__getitem__)
        self._sockets[worker] += 1
        self.room -= 1
        return worker, self._latencies[worker]

    def release(self, worker: int) -> None:
        """A socket of it has ended."""
        self._sockets[worker] -= 1
        self._count()

    def kill(self, worker: int, until: float) -> None:
        """It is away until then, without sockets."""
        self._down_until[worker] = max(self._down_until[worker], until)
        self._sockets[worker] = 0
        self._up = [each for each in self._up if each != worker]
        self._count()

    def revive(self, worker: int, now: float) -> None:
        """It is back, unless it was killed again meanwhile."""
        if worker not in self._up and now >= self._down_until[worker]:
            self._up = sorted((*self._up, worker))
            self._count()

    def _count(self) -> None:
        self.room = sum(self._capacities[worker] - self._sockets[worker] for worker in self._up)
