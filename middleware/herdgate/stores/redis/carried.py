"""What a process has seen of its fleet's calendar, and tells it again with each call.

A Redis that has lost its memory begins with that, and one that has not learns how much of an absence has been decided
without it. Pure.

    seen_v     V of the last reply, and the refill that the local share has handed out since: so far V has come
    paid_v     the same, but since the call that this reply answers was made: what accrues no more, anywhere
    passed_v   as far as V may have come by now, if all went on without us for a second at most
"""

from collections.abc import Sequence
from typing import Any

from herdgate.core.limits import Limits
from herdgate.core.tickets import Ticket
from herdgate.stores.redis.local_share import LocalShare
from herdgate.stores.redis.wire import Reply
from herdgate.stores.state import CalendarState

__all__ = ["MOST_USED", "Carried", "Used", "UsedTickets"]

LONGEST_GAP_S = 1.0
MOST_USED = 2_000

Used = tuple[str, int, int, int, int]
"""A ticket as `decide.lua` takes it: kind, class, moment, issuer, serial."""


class UsedTickets:
    """Those that have admitted somebody here while Redis was away, until it is told; the newest, if they are many."""

    def __init__(self) -> None:
        self._used: dict[Used, None] = {}

    def add(self, ticket: Ticket, klass: int) -> None:
        """One more."""
        kind, at_ms, issuer, serial = ticket
        self._used[kind, klass, at_ms, issuer, serial] = None
        if len(self._used) > MOST_USED:
            del self._used[next(iter(self._used))]

    def all(self) -> Sequence[Used]:
        """All that are to be told."""
        return tuple(self._used)

    def told(self, tickets: Sequence[Used]) -> None:
        """A call with these was answered."""
        for ticket in tickets:
            self._used.pop(ticket, None)


class Carried:
    """Of one process.

    Attributes:
        last: the state of the fleet as last told; None before the first reply.
        at: when that came, monotonic seconds.
        asked_at: when its call was made.
    """

    def __init__(self) -> None:
        self.last: Reply | None = None
        self.at = self.asked_at = 0.0

    @property
    def speed(self) -> float:
        """Of V: 1.0 at the first rate."""
        last = self.last
        return last.rate / last.first_rate if last and last.rate else 0.0 if last else 1.0

    def learn(self, reply: Reply, asked_at: float, now: float) -> None:
        """A call was answered."""
        self.last, self.asked_at, self.at = reply, asked_at, now

    def v(self, now: float) -> float | None:
        """Refill time of the fleet by now, as far as can be told; None: nothing is known."""
        return self.last.v + (now - self.at) * self.speed if self.last else None

    def state(self, limits: Limits, now: float) -> CalendarState:
        """The fleet's calendar, as last told; before that, what `limits` say."""
        last, names = self.last, [klass.name for klass in limits.classes]
        if last is None:
            return CalendarState(limits.rate, limits.burst, 0.0, 0.0, [(name, 0, 1.0) for name in names])
        classes = [(name, *hints) for name, hints in zip(names, last.classes, strict=False)]
        firm_s = max(0.0, last.firm - (last.v + (now - self.at) * self.speed))
        return CalendarState(last.rate, last.burst, last.tokens, firm_s, classes)

    def head(self, now: float, share: LocalShare | None) -> dict[str, Any]:
        """This part of the head of a call; see `calendar.lua`."""
        last = self.last
        if last is None:
            return {"seen_v": 0, "seen_firm": 0, "seen_issuer": 0}
        seen_v = last.v + (share.unheard if share else 0.0)
        alone_s = (share.began if share else now) - self.at
        return {
            "seen_v": seen_v,
            "paid_v": last.v + (share.untold if share else 0.0),
            "passed_v": seen_v + max(0.0, min(LONGEST_GAP_S, alone_s)) * self.speed,
            "seen_firm": last.firm,
            "seen_issuer": last.issuer,
            "seen_rate": last.rate,
            "seen_first_rate": last.first_rate,
            "seen_ceiling": last.ceiling,
            "seen_configured": last.configured,
            "seen_fraction": last.fraction,
            "since_s": now - self.asked_at,
        }
