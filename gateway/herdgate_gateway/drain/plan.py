"""How the time of a drain is used, and how fast sockets are moved. Pure: `now` (monotonic seconds) is an argument.

trigger .. its turn .. settled ........ one by one ........ the rest . hung up on .
                                                            |<-- HANG_UP_S -->| deadline
"""

import math
from typing import Literal

__all__ = ["HANG_UP_S", "LEAD_S", "Pace", "Schedule", "Trigger", "named", "needed_s", "outlook"]

Trigger = Literal["sigterm", "call", "file", "sign"]
"""What began a drain: SIGTERM or SIGINT; `herdgate drain`; a file; an early sign of a balancer."""

HANG_UP_S = 1.0
"""Before the deadline, for the last ones to read why, and to hang up."""

LEAD_S = 0.2
"""A socket is closed so long before its slot, for its client to be there in time."""

CATCH_UP_S = 0.25
"""Of the pace, that a late look may make up for."""

MOST_AT_ONCE = 100
"""Sockets closed at one look, where nothing limits admissions."""


class Schedule:
    """When a drain has to do what.

    Args:
        now: the moment of its trigger.
        within_s: seconds that it may take.

    Attributes:
        began: the moment of its trigger.
    """

    def __init__(self, now: float, within_s: float) -> None:
        self.began = now
        self._set_at, self._deadline = now, now + within_s

    @property
    def rest_at(self) -> float:
        """When all that is still open is closed."""
        return max(self._set_at, self._deadline - HANG_UP_S)

    @property
    def ends_at(self) -> float:
        """When what has not hung up is cut: the deadline, but `HANG_UP_S` after the rest was told at least."""
        return self.rest_at + HANG_UP_S

    def latest_start(self, needed_s: float) -> float:
        """When to begin what takes so many seconds; what will never be done gains nothing by an early start."""
        return self.rest_at - needed_s if math.isfinite(needed_s) else self.rest_at

    def shorten(self, now: float, within_s: float) -> None:
        """Be over within so many seconds from now; without effect if it has to be earlier already."""
        if now + within_s < self._deadline:
            self._set_at, self._deadline = now, now + within_s


class Pace:
    """How many sockets may be closed by now.

    Args:
        now: when it begins, with one.
    """

    def __init__(self, now: float) -> None:
        self._at, self._due = now, 1.0

    def take(self, now: float, per_s: float | None) -> int:
        """How many more, at so many a second since the last look; None: as many as can be looked after."""
        elapsed, self._at = now - self._at, now
        if per_s is None:
            return MOST_AT_ONCE
        self._due = min(self._due + elapsed * per_s, max(1.0, CATCH_UP_S * per_s))
        whole = int(self._due)
        self._due -= whole
        return whole


def named(trigger: Trigger) -> str:
    """What began it, in words."""
    return {"sigterm": "SIGTERM", "call": "a call", "file": "the file", "sign": "an early sign"}[trigger]


def needed_s(sockets: int, per_s: float | None) -> float:
    """Seconds to move so many at so many a second; None: no limit."""
    if not sockets or per_s is None:
        return 0.0
    return sockets / per_s if per_s > 0 else math.inf


def outlook(sockets: int, per_s: float | None, within_s: float) -> str:
    """Whether the time will do, in words."""
    if per_s is None:
        return "as fast as they can be told, for there is no rate"
    needed, within_s = needed_s(sockets, per_s), max(0.0, within_s)
    if math.isinf(needed):
        return f"nobody at 0/s, unless that changes: all are closed together in {within_s:.1f} s"
    if needed <= within_s:
        return f"{needed:.1f} s at {per_s:.3g}/s"
    late = math.ceil(sockets - within_s * per_s)
    return f"{needed:.1f} s at {per_s:.3g}/s, {needed - within_s:.1f} s short: the last {late:,} are closed together"
