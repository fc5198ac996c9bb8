"""Who is alive, and what each has been granted: what `gateways.lua` keeps in Redis. Pure: `now` is an argument.

A process tells its counts with every call, as they stand; what it is granted is added here until it tells them again.
"""

from collections import Counter
from collections.abc import Mapping

__all__ = ["DEAD_S", "Counts"]

DEAD_S = 10.0
"""Seconds after its last call in which a process counts as alive."""


class Counts:
    """Those of all processes.

    Attributes:
        granted: of all of them together: `open`, `pending`, and `worker:<name>` for each worker.
    """

    def __init__(self) -> None:
        self.granted: Counter[str] = Counter()
        self._rows: dict[str, Counter[str]] = {}
        self._seen: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def tell(self, name: str, counts: Mapping[str, int], now: float) -> None:
        """A process calls: these are its counts. Those that have not called for a while are forgotten."""
        for silent in [other for other, seen in self._seen.items() if seen < now - DEAD_S]:
            self.forget(silent)
        self.forget(name)
        self._rows[name], self._seen[name] = Counter(counts), now
        self.granted.update(counts)

    def grant(self, name: str, field: str) -> None:
        """One more for a process that has called."""
        self._rows[name][field] += 1
        self.granted[field] += 1

    def forget(self, name: str) -> None:
        """It has ended, and its sockets with it; harmless to repeat."""
        self._seen.pop(name, None)
        self.granted.subtract(self._rows.pop(name, Counter()))
        self.granted = +self.granted
