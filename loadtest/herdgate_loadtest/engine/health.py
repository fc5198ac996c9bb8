"""The generator's watch over itself: a run it spoiled must not pass for a result.

Rules: lag is sampled on a fixed grid of 20 ms. A tick is compared with its intended moment, and ticks that a block
swallowed count each with their own lateness, so one block of a second weighs as the fifty samples it is. On that
scale p99 < 100 ms means: for 99 % of the run a client that was due was served within 100 ms. More makes the run
invalid, and so does the first descriptor or port this machine could not provide.
"""

import time
from array import array
from collections import Counter
from typing import TYPE_CHECKING

from herdgate_loadtest.counted import counted
from herdgate_loadtest.engine.record import percentile

if TYPE_CHECKING:
    import asyncio

__all__ = ["MOST_LAG_S", "Health"]

MOST_LAG_S = 0.1
_TICK_S = 0.02


class Health:
    """Samples the event loop from `start` to `stop`, and collects faults.

    Attributes:
        faults: what this machine ran out of, and how often (`EMFILE`, `EADDRNOTAVAIL`, ...).
    """

    def __init__(self) -> None:
        self.faults: Counter[str] = Counter()
        self._lags = array("f")
        self._dial_lags = array("f")
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self, loop: "asyncio.AbstractEventLoop") -> None:
        """Begin to sample."""
        self._due = time.monotonic() + _TICK_S
        self._timer = loop.call_later(_TICK_S, self._tick, loop)

    def stop(self) -> None:
        """End sampling."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def excuse(self) -> None:
        """Take no sample of what blocked until now: the cut is one long, intended block."""
        self._due = time.monotonic() + _TICK_S

    def dialled(self, late_s: float) -> None:
        """A client dialled `late_s` after its intended moment."""
        self._dial_lags.append(late_s)

    @property
    def lag_p99_s(self) -> float:
        """Lateness of the event loop that 99 % of the samples stay within, seconds."""
        return percentile(sorted(self._lags), 99)

    @property
    def dial_lag_p95_s(self) -> float:
        """Lateness of dials: above the loop's own lag, the crowd asked for more dials at once than one process does."""
        return percentile(sorted(self._dial_lags), 95)

    def reasons(self) -> list[str]:
        """Why the run is not valid; empty if it is."""
        lag_s = self.lag_p99_s
        found = [
            f"the generator ran out: {fault} on {counted(times, 'try', 'tries')}"
            for fault, times in sorted(self.faults.items())
        ]
        if lag_s >= MOST_LAG_S:
            found.append(
                f"the generator's scheduler lag p99 was {lag_s * 1e3:.0f} ms; {MOST_LAG_S * 1e3:.0f} is too much"
            )
        return found

    def _tick(self, loop: "asyncio.AbstractEventLoop") -> None:
        now = time.monotonic()
        while self._due <= now:
            self._lags.append(now - self._due)
            self._due += _TICK_S
        self._timer = loop.call_later(self._due - now, self._tick, loop)
