"""How long a client waits before its next try: the arithmetic alone.

Rules: pure; the random source is an argument. What was told is never shortened. Where nothing was told it is full
jitter (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015) with a floor: uniform between
min(0.1 s, cap) and min(cap, base * 2 ** failures), the first time too, so that a crowd that lost its sockets together
does not come back together. A delay in whole seconds, which many are told alike, has such a draw added to it.
"""

from dataclasses import dataclass
from random import Random

from herdgate_client.errors import ConfigurationError
from herdgate_client.told import Told

__all__ = ["FLOOR_S", "Pace"]

FLOOR_S = 0.1
"""Least wait in seconds where nothing was told, unless the cap is less."""

_LONGEST_S = 86_400.0
_MOST_DOUBLINGS = 1023  # 2.0 ** 1024 is an OverflowError


@dataclass(frozen=True, slots=True)
class Pace:
    """The settings of the wait.

    Attributes:
        base_s: longest first wait, seconds, above 0.
        cap_s: longest wait that was not told, seconds, above 0, at most a day.
        stable_s: a session that lasted this long, seconds, above 0, ends the backoff.

    Raises:
        ConfigurationError: a value out of its range.
    """

    base_s: float = 1.0
    cap_s: float = 30.0
    stable_s: float = 30.0

    def __post_init__(self) -> None:
        for field in ("base_s", "cap_s", "stable_s"):
            value = getattr(self, field)
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not 0 < value <= _LONGEST_S:  # NaN is neither
                raise ConfigurationError(field, value, f"write seconds, above 0 and at most {_LONGEST_S:.0f}")

    def range_s(self, failures: int) -> tuple[float, float]:
        """Shortest and longest wait where nothing was told.

        Args:
            failures: since the last stable session, 0 or more.
        """
        shortest = min(FLOOR_S, self.cap_s)
        return shortest, max(shortest, min(self.cap_s, self.base_s * 2.0 ** min(failures, _MOST_DOUBLINGS)))

    def wait_s(self, told: Told, failures: int, rng: Random) -> float:
        """Seconds to wait before the next try."""
        if told.delay_s is not None and told.exact:
            return told.delay_s
        return (told.delay_s or 0.0) + rng.uniform(*self.range_s(failures))
