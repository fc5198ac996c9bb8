"""Keyed GCRA: the generic cell rate algorithm (ITU-T I.371, virtual scheduling), one cell stream per client key.

Each key has a theoretical arrival time (TAT). An arrival conforms if TAT - now <= (burst - 1) * T, with T = 1 / rate;
then TAT = max(TAT, now) + T. In any window of W seconds at most burst + W * rate arrivals of one key conform.

Times are whole nanoseconds inside, so that a burst of N admits exactly N however long the process has run.
"""

from herdgate.core.table import TatTable

__all__ = ["KeyedGcra"]

NS = 1_000_000_000
NEVER_S = 600.0
"""What a key of rate 0 is told to wait, seconds."""


class KeyedGcra:
    """At most `rate` arrivals a second and `burst` at once for every key.

    Args:
        rate: arrivals per second, 0 or more.
        burst: arrivals at once, at least 1; None: one second of `rate`, at least 1.
        most_keys: keys remembered; see `herdgate.core.table`.
    """

    def __init__(self, rate: float, burst: float | None, most_keys: int) -> None:
        self._table = TatTable(most_keys)
        self.set_limit(rate, burst)

    def __len__(self) -> int:
        return len(self._table)

    def set_limit(self, rate: float, burst: float | None) -> None:
        """Another limit from now on; a key over the old one serves its penalty first."""
        self.rate = rate
        self.burst = max(1.0, rate) if burst is None else burst
        self._interval = max(1, round(NS / rate)) if rate else 0
        self._tolerance = self._table.tolerance_ns = round((self.burst - 1) * self._interval)

    def wait(self, key: str, now: float) -> float:
        """Seconds until an arrival of `key` would conform; 0.0: now. Charges nothing."""
        if not self._interval:
            return NEVER_S
        early = self._table.get(key) - int(now * NS) - self._tolerance
        return early / NS if early > 0 else 0.0

    def charge(self, key: str, now: float) -> None:
        """Count one arrival of `key`. Call it only after `wait` said 0.0."""
        now_ns = int(now * NS)
        tat = self._table.get(key)
        self._table.put(key, (tat if tat > now_ns else now_ns) + self._interval, now_ns)

    def give_back(self, key: str, charged_at: float, now: float) -> None:
        """Undo a charge made at `charged_at`, unless its cell is over: then it is too late to tell what came of it."""
        now_ns, tat = int(now * NS), self._table.get(key)
        if tat > now_ns and now_ns - int(charged_at * NS) < self._interval:
            self._table.put(key, tat - self._interval, now_ns)
