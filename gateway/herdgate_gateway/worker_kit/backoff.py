"""How long a handler that has ended waits before it runs again. Pure.

Full jitter with a lower clamp (Brooker, "Exponential Backoff And Jitter", AWS 2015): uniform between half a second and
a ceiling that doubles with each run that was a short one.
"""

from collections.abc import Callable

__all__ = ["Backoff"]

LEAST_S, MOST_S = 0.5, 60.0
STABLE_S = 60.0
"""Seconds of running after which an end is the first one again."""


class Backoff:
    """Of one connection.

    Args:
        random: uniform numbers in [0, 1).
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._ceiling_s = LEAST_S

    def after(self, ran_s: float) -> float:
        """Seconds to wait after a run of so many."""
        self._ceiling_s = 2 * LEAST_S if ran_s >= STABLE_S else min(MOST_S, 2 * self._ceiling_s)
        return LEAST_S + (self._ceiling_s - LEAST_S) * self._random()
