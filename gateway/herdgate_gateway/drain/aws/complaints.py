"""Says why there is no answer of AWS: once an hour for each kind of fault, not once for each look."""

import logging
from collections.abc import Callable

from herdgate_gateway.drain.aws.faults import Fault

__all__ = ["Complaints"]

AGAIN_S = 3_600.0

_logger = logging.getLogger("herdgate.drain")


class Complaints:
    """Those of one process.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._said: dict[str, float] = {}  # kind -> when

    def say(self, fault: Fault) -> None:
        """Log it, unless one of its kind was logged of late."""
        now = self._clock()
        if now - self._said.get(fault.kind, -AGAIN_S) >= AGAIN_S:
            self._said[fault.kind] = now
            _logger.warning("no early signs for now: %s", fault.line)
