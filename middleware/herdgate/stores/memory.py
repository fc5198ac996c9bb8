"""The calendar in this process: grants at once."""

from collections.abc import Callable
from dataclasses import replace

from herdgate.core.admission import FULL_RETRY_S
from herdgate.core.answers import Queued
from herdgate.core.calendar import Calendar
from herdgate.core.grant import Grant
from herdgate.core.limits import Limits
from herdgate.core.numbers import check_rate
from herdgate.core.tickets import Ticket
from herdgate.core.unlimited import Unlimited
from herdgate.stores.state import CalendarState

__all__ = ["MemoryStore"]


class MemoryStore:
    """One calendar for one process.

    Args:
        limits: the rate, the burst and the calendar's times.
        random: uniform numbers in [0, 1).
        now: monotonic seconds.
        origin_ms: see `Calendar`.

    Attributes:
        fraction: the admitted share that a fleet has agreed on; None: there is no fleet.
    """

    def __init__(self, limits: Limits, random: Callable[[], float], now: float, origin_ms: int = 0) -> None:
        self._limits = limits
        self._random = random
        self._origin = (now, origin_ms)
        self._ruled: Calendar | None = None  # kept while there is no rate
        self.fraction: float | None = None
        self.calendar: Calendar | Unlimited = Unlimited(limits.classes)
        self.set_rate(limits.rate, now)

    def grant(self, queued: Queued, now: float) -> Grant:
        """The calendar's answer; an arrival queued for a hint only gets one."""
        if queued.reason is not None:
            return self.hint(now, queued.shown, queued.klass)
        grant = self.calendar.arrive(now, queued.shown, queued.klass)
        return grant if queued.worker is None or not grant.admitted else grant._replace(worker=queued.worker)

    def reserve(self, queued: Queued, now: float) -> Grant:
        """As `grant`, but who would be admitted gets a firm slot for this moment instead."""
        if queued.reason is not None:
            return self.hint(now, queued.shown, queued.klass)
        return self.calendar.reserve(now, queued.shown, queued.klass)

    def hint(self, now: float, shown: Ticket | None = None, klass: int = 0) -> Grant:
        """A hint for an arrival that may not come in for another reason, not too soon."""
        low, high = FULL_RETRY_S
        return self.calendar.hint(now, shown, low + (high - low) * self._random(), klass)

    def defer(self, now: float, klass: int = 0) -> Grant:
        """A firm slot for one grant that could not be used, which stays spent."""
        return self.calendar.defer(now, klass)

    def is_due(self, ticket: Ticket, now: float) -> bool:
        """True from the ticket's time to the end of its grace."""
        return self.calendar.is_due(ticket, now)

    def give_back(self) -> None:
        """Undo one grant that was not used."""
        self.calendar.give_back()

    def set_limits(self, limits: Limits, now: float) -> None:
        """Take over rate, burst, classes and times from `now` on."""
        self._limits = limits
        if self._ruled is not None:
            self._ruled.set_limits(limits, now)
        self.set_rate(limits.rate, now)

    def set_rate(self, rate: float | None, now: float) -> None:
        """Change the rate from `now` on. None sets the calendar aside; what was promised and used stays known.

        Raises:
            ConfigurationError: negative, NaN, infinite or not a number.
        """
        check_rate("rate", rate, unit="a number of admissions per second")
        if rate is None:
            self.calendar = Unlimited(self._limits.classes)
        elif self._ruled is None:
            began, origin_ms = self._origin
            limits, origin_ms = replace(self._limits, rate=rate), origin_ms + int((now - began) * 1000)
            self.calendar = self._ruled = Calendar(limits, self._random, now, origin_ms)
        else:
            self.calendar = self._ruled
            self._ruled.set_rate(rate, now)

    def set_fraction(self, fraction: float) -> None:
        """There is nobody to tell."""

    def state(self, now: float) -> CalendarState:
        """The calendar at this moment."""
        calendar = self.calendar
        calendar.advance(now)
        classes = [(hints.name, hints.outstanding, hints.show_rate) for hints in calendar.classes]
        firm_s = max(0.0, calendar.firm - calendar.v)
        return CalendarState(calendar.rate, calendar.burst, calendar.tokens, firm_s, classes)

    def separate(self) -> None:
        """This process is a fork of another: the promises made so far are the other's, and count as hints here."""
        if self._ruled is not None:
            self._ruled.renew_issuer()
