"""When to leave a worker alone. Pure: `now`, in seconds, is an argument.

    up       everything goes there; `failures` in a row break it
    broken   nothing goes there for `open_s`; then one probe at a time, until one succeeds
    ramping  for `ramp_s` a share of the arrivals, growing evenly from none to all; a failure breaks it again

A client that leaves at once says nothing of the worker: neither a success nor a failure.
"""

import math
from dataclasses import dataclass
from typing import Literal

from herdgate.core.numbers import check_number

__all__ = ["Breaker", "BreakerSettings", "BreakerState"]

BreakerState = Literal["up", "broken", "ramping"]


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """When a worker counts as broken.

    Attributes:
        failures: in a row, at least 1.
        open_s: seconds before the first probe, and between two.
        ramp_s: seconds from a probe that succeeded to a full share; 0: at once.

    Raises:
        ConfigurationError: one of them is out of its range.
    """

    failures: int = 5
    open_s: float = 5.0
    ramp_s: float = 10.0

    def __post_init__(self) -> None:
        check_number("failures", self.failures, least=1, unit="a whole number of failures in a row", whole=True)
        check_number("open_s", self.open_s, least=0, most=3_600, unit="seconds")
        check_number("ramp_s", self.ramp_s, least=0, most=3_600, unit="seconds")


class Breaker:
    """Follows one worker.

    Args:
        since: what went there earlier is no news.
    """

    def __init__(self, settings: BreakerSettings, since: float = -math.inf) -> None:
        self._settings, self._since = settings, since
        self._in_a_row = 0
        self._broken_at: float | None = None
        self._back_at: float | None = None
        self._probing = False
        self._credit = 0.0

    def state(self, now: float) -> BreakerState:
        """What it is like at the moment."""
        if self._broken_at is not None:
            return "broken"
        return "ramping" if self._back_at is not None and now < self._back_at + self._settings.ramp_s else "up"

    def lets_through(self, now: float) -> bool:
        """True if this arrival may go there. Asked once for each arrival, as a ramp counts them."""
        if self._broken_at is not None:
            return not self._probing and now >= self._broken_at + self._settings.open_s
        if self._back_at is None or now >= self._back_at + self._settings.ramp_s:
            return True
        self._credit = min(self._credit + (now - self._back_at) / self._settings.ramp_s, 1.0)
        return self._credit >= 1.0

    def begin(self) -> bool:
        """An arrival goes there. Returns whether it is a probe, which has to `end_probe`."""
        self._credit = 0.0
        if self._broken_at is None:
            return False
        self._probing = True
        return True

    def end_probe(self) -> None:
        """The probe is over, whatever came of it."""
        self._probing = False

    def succeed(self, now: float) -> None:
        """The worker has answered."""
        self._in_a_row = 0
        if self._broken_at is not None:
            self._broken_at, self._back_at, self._credit = None, now, 0.0

    def fail(self, now: float, since: float, *, probe: bool = False) -> bool:
        """The worker has failed an arrival that went there at `since`. Returns whether that broke it.

        A crowd sent there before it broke fails later, one by one: that is old news, and only a probe keeps it broken
        for longer.
        """
        if since < self._since:
            return False
        if self._broken_at is not None:
            if probe:
                self._broken_at = now
            return False
        if self._back_at is not None and since < self._back_at:
            return False
        self._in_a_row += 1
        if self._in_a_row < self._settings.failures and self.state(now) == "up":
            return False
        self._broken_at, self._back_at, self._in_a_row = now, None, 0
        return True
