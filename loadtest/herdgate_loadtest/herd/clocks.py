"""How far the monotonic clock of another machine is from ours.

Processes of one machine share CLOCK_MONOTONIC (their boot ids are the same): their offset is 0, exactly. Of another
machine the quickest of several questions tells: it answered in the middle of its way, give or take half of that way
(Cristian, "Probabilistic clock synchronization", 1989).
"""

from pathlib import Path
from typing import NamedTuple

__all__ = ["ENOUGH", "Offset", "boot_id", "offset_of"]

ENOUGH = 5
"""Questions that each machine is asked."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Offset(NamedTuple):
    """What to add to our moments to have theirs, and how wrong that may be; seconds."""

    seconds: float = 0.0
    error_s: float = 0.0


def boot_id() -> str:
    """The same in all processes that share a clock; "": not known, so nobody does."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def offset_of(asked_at: float, theirs: float, answered_at: float) -> Offset:
    """One question: asked and answered at our moments, answered at theirs."""
    half = (answered_at - asked_at) / 2
    return Offset(theirs - (asked_at + half), half)
