"""How fast connections are taken: a small token bucket. Pure: `now` (monotonic seconds) is an argument."""

__all__ = ["Pace"]

BURST_S = 0.1


class Pace:
    """So many a second; a tenth of a second's worth at once, 1 at least.

    Args:
        rate: per second, above 0.
    """

    def __init__(self, rate: float, now: float) -> None:
        self._rate, self._burst = rate, max(1.0, rate * BURST_S)
        self._tokens, self._at = self._burst, now

    def wait_s(self, now: float) -> float:
        """Seconds until the next one may be taken; 0.0: now."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        return 0.0 if self._tokens >= 1 else (1 - self._tokens) / self._rate

    def take(self) -> None:
        """Count one, once there is no wait."""
        self._tokens -= 1
