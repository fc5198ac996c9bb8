"""What this process holds of what it was granted: told as it stands with every call."""

from collections import Counter
from weakref import WeakSet

from herdgate.core.grant import Grant
from herdgate.core.permits import Permits

__all__ = ["Held"]


class Held:
    """Permits, and grants that are on the way to whoever asked.

    Attributes:
        permits: those that count, of all gates of this process.
    """

    def __init__(self) -> None:
        self.permits: WeakSet[Permits] = WeakSet()
        self._pending = 0  # on the way
        self._workers = Counter[str]()  # those of them that go to a worker, by its name

    def count_unsettled(self, grant: Grant, change: int) -> None:
        """A grant goes on its way (1), or has arrived (-1)."""
        self._pending += change
        if grant.worker is not None:
            self._workers[grant.worker] += change

    def by_worker(self) -> Counter[str]:
        """Sockets at each worker, by its name."""
        held = self._workers.copy()
        for permits in self.permits:
            held.update(permits.workers)
        return held

    def counts(self) -> dict[str, int]:
        """As `by_worker`, and those of all sockets: what `gateways.lua` takes."""
        counts = {f"worker:{name}": count for name, count in self.by_worker().items()}
        counts["open"] = sum(permits.open for permits in self.permits)
        counts["pending"] = self._pending + sum(permits.pending for permits in self.permits)
        return counts
