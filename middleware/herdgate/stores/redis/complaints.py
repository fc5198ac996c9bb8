"""Says what is wrong with the replies of a fleet's Redis: one line for a cause, not one for each call."""

import logging
import re
from collections.abc import Callable

from herdgate.fleet import Fleet
from herdgate.stores.links import PARENT_SCHEME

__all__ = ["Complaints"]

AGAIN_S = 600.0
"""Seconds until the same cause is said again, if it is still there."""

MOST_CAUSES = 32
_VARYING = re.compile(r"\b[0-9a-f]{40}\b|\d+")

_logger = logging.getLogger("herdgate.redis")


class Complaints:
    """Those of one process.

    Args:
        fleet: it belongs to.
        keys: of the fleet, a pattern.
        clock: monotonic seconds.
    """

    def __init__(self, fleet: Fleet, keys: str, clock: Callable[[], float]) -> None:
        way_out = "restart the gateway"
        if not fleet.redis.startswith(PARENT_SCHEME):
            way_out = f"delete the keys {keys} or upgrade all gateways"
        self._rest = f"fleet {fleet.name}: this process decides alone; {way_out}"
        self._clock = clock
        self._said: dict[str, float] = {}  # cause -> when

    def say(self, error: Exception, *, traceback: bool = False) -> None:
        """Log an error with what to do, unless its like was logged of late: numbers make no difference."""
        cause, now = _VARYING.sub("#", str(error)), self._clock()
        if now - self._said.get(cause, -AGAIN_S) < AGAIN_S:
            return
        if len(self._said) >= MOST_CAUSES:
            self._said.pop(next(iter(self._said)))
        self._said.pop(cause, None)
        self._said[cause] = now
        _logger.error("%s; %s", str(error) or type(error).__name__, self._rest, exc_info=error if traceback else None)
