"""What the log says of one worker: a line when it begins to fail, a line when it is well again, however many clients.

    well -> failing: it has failed -> left alone: its breaker has tripped -> well: a probe succeeded
                                   -> well: it answers, and has not failed for 10 s

A failure that comes later than the end of what it belongs to is none to tell of.
"""

import logging
import math

from herdgate.core.errors import printable

__all__ = ["WorkerLog"]

QUIET_S = 10.0
"""Seconds without a failure, after which one that answers is well again."""

LONGEST = 200
"""Characters of what it did."""

_logger = logging.getLogger("herdgate.workers")


class WorkerLog:
    """Of one worker; seconds are those of its pool's clock."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._failed_at: float | None = None
        self._well_at = -math.inf

    def failed(self, why: str, now: float, since: float, *, broke: bool) -> None:
        """It has failed an arrival that went there at `since`.

        Args:
            why: what it did; some of that may be the worker's own words.
            broke: it is left alone from now on.
        """
        if broke:
            _logger.warning("worker fails, leaving it alone: %s (%s)", self._url, printable(why[:LONGEST]))
        elif since < self._well_at:
            return  # old news
        elif self._failed_at is None:
            _logger.warning("worker fails: %s (%s)", self._url, printable(why[:LONGEST]))
        self._failed_at = now

    def answered(self, now: float, *, is_back: bool) -> None:
        """It has answered as it should, `is_back`: for the first time since it was left alone."""
        if self._failed_at is None or not (is_back or now - self._failed_at >= QUIET_S):
            return
        _logger.info("worker is %s: %s", "back" if is_back else "well again", self._url)
        self._failed_at, self._well_at = None, now
