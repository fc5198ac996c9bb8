"""How fast a worker that stops in good order moves its sockets to others. Pure.

At most half of what the fleet admits, so that clients who come back do not take all of it from others; faster where
they would not all have been moved in the time there is.
"""

__all__ = ["pause_s", "within_s"]

DRAIN_SHARE = 0.5
BLIND = 0.5
"""Of the time to stop, to move sockets in where nobody knows the fleet's rate."""
PACED = 0.8
"""The same where the rate is known; what is left of it is for the last ones and for closing."""


def within_s(stop_s: float, rate: float | None) -> float:
    """Seconds in which all sockets have to be moved.

    Args:
        stop_s: seconds in which all has to be over.
        rate: admissions of the fleet per second; None: not known.
    """
    return stop_s * (BLIND if rate is None else PACED)


def pause_s(moved: int, left: int, rate: float | None, left_s: float) -> float:
    """Seconds to wait after so many were moved; 0.0: none.

    Args:
        left: sockets still to be moved.
        rate: admissions of the fleet per second; None: not known.
        left_s: seconds in which these have to be moved.
    """
    if left_s <= 0 or not left:
        return 0.0
    needed = (moved + left) / left_s
    return moved / max(needed, DRAIN_SHARE * (rate or 0.0))
