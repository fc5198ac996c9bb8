"""When what failed is asked again: full jitter (Brooker, "Exponential Backoff And Jitter", AWS 2015). Pure.

Uniform between nothing and a ceiling that doubles with each failure in a row, up to a minute.
"""

from collections.abc import Callable

__all__ = ["Backoffs"]

MOST_S = 60.0


class Backoffs:
    """Of all that one process asks, each on its own.

    Args:
        least_s: ceiling after the first failure, seconds.
        random: uniform numbers in [0, 1).
    """

    def __init__(self, least_s: float, random: Callable[[], float]) -> None:
        self._least_s, self._random = least_s, random
        self._failed: dict[str, tuple[float, float]] = {}  # what -> ceiling, when it is due again

    def is_due(self, what: str, now: float) -> bool:
        """Whether it may be asked. `now`: monotonic seconds."""
        return what not in self._failed or now >= self._failed[what][1]

    def failed(self, what: str, now: float) -> None:
        """There was no answer."""
        before, _ = self._failed.get(what, (self._least_s / 2, 0.0))
        ceiling = min(MOST_S, 2 * before)
        self._failed[what] = ceiling, now + ceiling * self._random()

    def served(self, what: str) -> None:
        """There was one."""
        self._failed.pop(what, None)
