"""The calendar of a gate without a rate."""

from collections.abc import Sequence

from herdgate.core.classes import AdmissionClass
from herdgate.core.grant import Grant
from herdgate.core.promises import hints_of
from herdgate.core.tickets import Ticket

__all__ = ["Unlimited"]


class Unlimited:
    """Admits every arrival, promises nothing."""

    rate = burst = tokens = None  # no limit
    hints, firm, v = 0, 0.0, 0.0

    def __init__(self, classes: Sequence[AdmissionClass]) -> None:
        self.classes = hints_of(classes)

    def advance(self, now: float) -> None:
        """No time passes here."""

    def arrive(self, now: float, shown: Ticket | None = None, klass: int = 0) -> Grant:
        """Admit."""
        return Grant(True)

    reserve = arrive

    def hint(self, now: float, shown: Ticket | None = None, least_s: float = 0.0, klass: int = 0) -> Grant:
        """Nothing to estimate from: `least_s` it is."""
        return Grant(False, None, least_s)

    def defer(self, now: float, klass: int = 0) -> Grant:
        """Nothing to estimate from."""
        return Grant(False)

    def give_back(self) -> None:
        """Nothing was taken."""

    def is_due(self, ticket: Ticket, now: float) -> bool:
        """False: a ticket buys nothing here."""
        return False
