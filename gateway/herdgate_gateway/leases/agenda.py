"""When to sweep which shards. Pure.

    news         those I rank first for, at once; a little later those I rank second for; after 10 s all mine again
    no news      all mine every 60 s, at moments that are spread over the workers
    unclear      those I rank first for, soon

Mine are those I hold, rank first for or rank second for. A rank is only a delay: who ranks second takes what the first
one has left. So a death costs each worker the reading of its own part, and nobody scans the table.
"""

from collections.abc import Callable
from math import inf
from typing import Literal

__all__ = ["Agenda", "Task"]

Task = Literal["first", "second", "mine"]

STAGGER_S = 2.0
AGAIN_S = 10.0
REGULAR_S = 60.0
SOON_S = 0.3
_SPREAD = 0.1


class Agenda:
    """Of one worker.

    Args:
        random: uniform numbers in [0, 1).
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._at: dict[Task, float] = {"first": inf, "second": inf, "mine": inf}

    def news(self, now: float) -> None:
        """Somebody came or went, or my own right was gone for a while."""
        coming: dict[Task, float] = {"first": now, "second": now + STAGGER_S, "mine": now + self._spread(AGAIN_S)}
        self._at = {task: min(at, coming[task]) for task, at in self._at.items()}

    def look_again(self, now: float) -> None:
        """It was not clear whether some owner is dead."""
        self._at["first"] = min(self._at["first"], now + SOON_S)

    def take_due(self, now: float) -> list[Task]:
        """What is to be done now; it is off the list then."""
        due = [task for task, at in self._at.items() if at <= now]
        for task in due:
            self._at[task] = now + self._spread(REGULAR_S) if task == "mine" else inf
        return due

    def wait_s(self, now: float) -> float:
        """Seconds until there is something to do; inf: nothing."""
        return max(0.0, min(self._at.values()) - now)

    def _spread(self, seconds: float) -> float:
        return seconds * (1 + _SPREAD * (2 * self._random() - 1))
