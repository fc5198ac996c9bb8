"""The part of a fleet's calendar that one gateway runs itself while Redis is away.

Rules: it starts without tokens, each time. It keeps count of the refill it has handed out, so that the fleet's calendar
does not hand it out again. Its time passes by a second at most between two looks, as the fleet's does: a process that
was stopped has decided nothing meanwhile.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from herdgate.core.calendar import Calendar
from herdgate.core.grant import Grant
from herdgate.core.limits import Limits
from herdgate.core.numbers import LEAST_RATE
from herdgate.core.tickets import Ticket
from herdgate.fleet import Fail
from herdgate.stores.memory import MemoryStore
from herdgate.stores.redis.wire import Ask, Reply
from herdgate.stores.state import CalendarState

__all__ = ["LocalShare"]

LONGEST_STEP_S = 1.0


class LocalShare:
    """A calendar for this process alone.

    At the last known rate divided by the known gateways; without tokens, for the fleet's may be used up; and behind
    the firm slots the fleet has promised, whose holders come to any gateway and are let in at their time.

    Args:
        limits: of the whole fleet.
        last: the last reply; None: Redis has never answered.
        v: refill time of the fleet by now, as far as can be told; what tickets count in.
        random: uniform numbers in [0, 1).
        now: monotonic seconds.
        gateways: that share the rate.
        rate: of the whole fleet, as ordered since the last reply; None: as it was.
        fail: what arrivals are told.

    Attributes:
        began: when, in monotonic seconds.
        gateways: as given.
        knows_fleet: there was a last reply.
    """

    def __init__(
        self,
        limits: Limits,
        last: Reply | None,
        v: float,
        random: Callable[[], float],
        now: float,
        *,
        gateways: int = 1,
        rate: float | None = None,
        fail: Fail = "local_share",
    ) -> None:
        before, first = (last.rate, last.first_rate) if last else (limits.rate or 0.0,) * 2
        self.began = now
        self.knows_fleet = last is not None
        self.gateways = gateways
        self._fail: Fail = fail
        self._limits = limits
        self._seen, self._time = now, 0.0
        self._rate = before if rate is None else rate
        self._store = MemoryStore(self._share_of(limits, first), random, 0.0, math.floor(v * 1000))
        calendar = self._calendar
        calendar.tokens = 0.0
        if last:
            calendar.succeed(last.issuer, max(0.0, last.firm - v))
        self._store.set_rate(self._part_of(self._rate), 0.0)
        self._told = self._heard = 0.0

    @property
    def refill(self) -> float:
        """Refill time that it has handed out, seconds of the fleet's V."""
        return 0.0 if self._fail == "closed" else self._calendar.v

    def refill_by(self, now: float) -> float:
        """As `refill`, when time has gone on up to `now`."""
        self.pass_time(now)
        return self.refill

    def heard(self, refill: float) -> None:
        """The fleet has answered a call for which `refill` had been handed out: it knows of that."""
        self._told, self._heard = refill, self.refill

    @property
    def unheard(self) -> float:
        """Refill time handed out since the fleet was last heard of, seconds: it has passed there too."""
        return self.refill - self._heard

    @property
    def untold(self) -> float:
        """Refill time handed out that the fleet was not told of, seconds."""
        return self.refill - self._told

    def pass_time(self, now: float) -> float:
        """Time goes on up to `now`; returns this calendar's own."""
        self._time += max(0.0, min(LONGEST_STEP_S, now - self._seen))
        self._seen = now
        self._calendar.advance(self._time)
        return self._time

    def answer(self, ask: Ask, now: float) -> Grant:
        """What this process says to an arrival, by itself and by what the fleet's settings want of it then."""
        time = self.pass_time(now)
        if self._fail == "open" and ask.mode in ("arrive", "reserve"):
            return Grant(True)
        if self._fail == "closed" or ask.mode == "hint":
            return self._store.hint(time, ask.shown, ask.klass)
        if ask.mode == "defer":
            return self._store.defer(time, ask.klass)
        answer = self._calendar.arrive if ask.mode == "arrive" else self._calendar.reserve
        return answer(time, ask.shown, ask.klass)

    def refuse(self, ask: Ask, now: float) -> Grant:
        """A hint only, as there is no room."""
        return self._store.hint(self.pass_time(now), ask.shown, ask.klass)

    def is_due(self, ticket: Ticket, now: float) -> bool:
        """True from the ticket's time to the end of its grace."""
        return self._store.is_due(ticket, self.pass_time(now))

    def give_back(self) -> None:
        """Undo one grant that was not used."""
        self._store.give_back()

    def take_off(self, tokens: int) -> None:
        """So many were granted elsewhere to arrivals that were settled here; no more than there are now."""
        calendar = self._calendar
        calendar.tokens = max(0.0, calendar.tokens - tokens)

    def share_with(self, gateways: int, rate: float) -> None:
        """The fleet has told late how many it is, and its rate; from the last time on that was looked at."""
        if (gateways, rate) != (self.gateways, self._rate):
            self.gateways = gateways
            self.set_limits(self._limits, self._seen)
            self.set_rate(rate, self._seen)

    def set_rate(self, rate: float, now: float) -> None:
        """The whole fleet is to have this rate from now on, admissions per second."""
        self._rate = rate
        self._store.set_rate(self._part_of(rate), self.pass_time(now))

    def set_limits(self, limits: Limits, now: float) -> None:
        """Take over burst, classes and times from now on."""
        self._limits = limits
        self._store.set_limits(self._share_of(limits, self._rate), self.pass_time(now))

    def state(self, now: float) -> CalendarState:
        """This calendar at this moment."""
        return self._store.state(self.pass_time(now))

    @property
    def _calendar(self) -> Calendar:
        calendar = self._store.calendar
        assert isinstance(calendar, Calendar)
        return calendar

    def _share_of(self, limits: Limits, rate: float) -> Limits:
        burst = None if limits.burst is None else max(1.0, limits.burst / self.gateways)
        return replace(limits, rate=self._part_of(rate), burst=burst)

    def _part_of(self, rate: float) -> float:
        return max(LEAST_RATE, rate / self.gateways) if rate else 0.0
