"""When one may act, and when one may declare another dead. Pure.

An owner counts its right from *before* the beat was sent, an observer counts its patience from *after* the answer that
first showed a beat. So, whatever a request or an answer takes, the right is over before the patience is, as long as
0.9 (1 + a) <= 1.02 (1 - b) for clocks that are off by a and b: about 6 % each.
"""

from math import inf

__all__ = ["FENCE", "MARGIN", "RIGHT", "Right"]

RIGHT = 0.9
"""Of the lease, from the sending of a beat: for so long its sender may act."""

FENCE = 1.02
"""Of the lease, from the answer that showed a beat: if none came since, its sender may be declared dead."""

MARGIN = 0.05
"""Of the lease: so long before the right runs out everything is let go of, and nothing new is begun."""


class Right:
    """Until when one life may act. It may be renewed in one thread and read in others.

    Args:
        lease_s: seconds.
    """

    __slots__ = ("_is_lost", "_lease_s", "ends_at")

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._is_lost = False
        self.ends_at = -inf

    def renew(self, sent_at: float) -> None:
        """A beat sent then was carried out."""
        self.ends_at = max(self.ends_at, sent_at + RIGHT * self._lease_s)

    def lose(self) -> None:
        """A beat was refused: this life is over."""
        self._is_lost = True

    @property
    def is_lost(self) -> bool:
        """True once this life is over; it never comes back."""
        return self._is_lost

    def runs(self, now: float) -> bool:
        """True while one may act."""
        return now < self.ends_at and not self._is_lost

    def left_s(self, now: float) -> float:
        """Seconds until everything has to be let go of; not above 0: by now."""
        return self.ends_at - MARGIN * self._lease_s - now
