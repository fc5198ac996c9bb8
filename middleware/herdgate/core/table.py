"""A bounded table of theoretical arrival times, one per client key: least recently used first out, with expiry.

Rules, under any flood of keys:
- memory is bounded by `most_keys`;
- a key over its limit is never evicted before its penalty ends, whatever else arrives;
- a key that finds every place taken by such keys is not forgotten either: it shares one of `most_keys` cells with the
  keys of the same hash, so it may be refused for another's sake, but never gets a fresh quota for each arrival.

A theoretical arrival time (TAT, see `herdgate.core.gcra`) in the past says nothing, so such an entry has expired.
"""

from collections import OrderedDict

__all__ = ["TatTable"]

PROBES = 8  # old entries looked at, at most, to make room for one
SWEEP = 2  # expired entries dropped with every new one, so that a table shrinks as it is used


class TatTable:
    """Key -> TAT in nanoseconds.

    Args:
        most_keys: places.

    Attributes:
        tolerance_ns: an entry with TAT > now + tolerance is over its limit.
    """

    def __init__(self, most_keys: int, tolerance_ns: int = 0) -> None:
        self._entries: OrderedDict[str, int] = OrderedDict()
        self._shared: list[int] | None = None
        self._most_keys = most_keys
        self.tolerance_ns = tolerance_ns

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> int:
        """The key's TAT; 0 if nothing is known."""
        tat = self._entries.get(key)
        if tat is not None:
            return tat
        return self._shared[self._cell(key)] if self._shared is not None else 0

    def put(self, key: str, tat: int, now: int) -> None:
        """Remember the key's TAT; it becomes the most recently used."""
        entries = self._entries
        if key in entries:
            entries[key] = tat
            entries.move_to_end(key)
            return
        if len(entries) < self._most_keys:
            self._drop_expired(now)
            entries[key] = tat
        elif self._evict(now):
            entries[key] = tat
        else:
            if self._shared is None:
                self._shared = [0] * self._most_keys
            self._shared[self._cell(key)] = tat

    def _cell(self, key: str) -> int:
        return hash(key) % self._most_keys  # of a secret per process: nobody outside can aim at another's cell

    def _drop_expired(self, now: int) -> None:
        entries = self._entries
        for _ in range(min(SWEEP, len(entries))):
            oldest = next(iter(entries))
            if entries[oldest] > now:
                return
            del entries[oldest]

    def _evict(self, now: int) -> bool:
        """Drop the least recently used key that is within its limit; pass over those that are not."""
        entries, limit = self._entries, now + self.tolerance_ns
        for _ in range(min(PROBES, len(entries))):
            oldest, tat = entries.popitem(last=False)
            if tat <= limit:
                return True
            entries[oldest] = tat
        return False
