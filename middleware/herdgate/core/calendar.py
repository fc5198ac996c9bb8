"""The calendar: a token bucket plus the promises made.

A plain token bucket decides who comes in now. Everyone else gets a promise. A denied newcomer gets a *hint*: an
estimate of when its turn comes. Whoever comes when told and still finds no token gets a *firm slot*: a piece of future
refill set aside, so that nobody can take it. Arrivals may be of several classes: see `herdgate.core.classes`.

Theory of operation. All times inside are *refill time* V, the integral of (rate / first rate) dt: a live rate change
stretches every promise with it, and a rate of 0 stops V. The times of `Limits` are seconds: where the rate is above the
first one they are stretched in V. Tokens accrue only for refill after `firm`, the moment up to
which refill belongs to firm slots; a token in the bucket may be taken whatever `firm` is. Promises are counted per
100 ms of V; once a bucket of them is over, firm slots nobody fetched give their tokens back, and the share of hints
that were kept corrects the next estimates.

Rules: in any window at most `burst` + integral of rate admissions, plus firm slots taken or given back late (`hold_s`
and one bucket of the rate at most), plus one whose refill began before the window. A ticket is redeemed at most once.
Nothing is kept per waiting client: the state is counts and one bit per ticket. `now` is monotonic seconds; going back
counts as standing still.
"""

from collections.abc import Callable
from math import ceil, floor

from herdgate.core.grant import Grant
from herdgate.core.limits import Limits
from herdgate.core.promises import BUCKET_MS, ClassHints, Promises, hints_of
from herdgate.core.spent import MINUTE_MS, SpentTickets
from herdgate.core.tickets import LATEST_MS, Kind, Ticket

__all__ = ["Calendar"]

MOST_SERIALS = 1 << 24
"""Tickets per minute of slot time; beyond it no ticket is given, so that their bits stay bounded."""

_BUCKETS_PER_S = 1000 // BUCKET_MS
_SLOW_TOLD_S = 10.0  # longest delay told while the rate is below the first one: it may rise again


_ADMITTED, _ADMITTED_SPENT = Grant(True), Grant(True, spent=True)
_make = tuple.__new__  # on the path of every denial: a named tuple's own constructor takes twice as long


class Calendar:
    """One rate, one bucket, one order for a whole crowd.

    Args:
        limits: `rate` (not None), `burst`, the classes and the four times.
        random: uniform numbers in [0, 1).
        now: monotonic seconds.
        origin_ms: what tickets call the first moment of V. Calendars that follow each other, or stand side by side,
            understand each other's tickets as hints if their origins are of one clock.
    """

    def __init__(self, limits: Limits, random: Callable[[], float], now: float, origin_ms: int = 0) -> None:
        rate = limits.rate or 0.0
        self.rate = self.first_rate = rate
        self.burst = 0.0
        self.v = 0.0
        self.firm = 0.0  # refill up to this V belongs to firm slots
        self.classes = hints_of(limits.classes)
        self._speed = 0.0  # of V: rate / first rate
        self._limits = limits
        self._random = random
        self.renew_issuer()
        self._former: int | None = None  # issuer whose firm slots are kept here, see `succeed`
        self._clock = now
        self._origin_ms = origin_ms
        self._firm = Promises()
        self._serials: dict[int, int] = {}  # minute of slot time -> next serial
        self._spent = SpentTickets()
        self._next_settle = 0.0  # in V
        self._settled = 0  # promises of earlier buckets have been settled, whatever the hold comes to later
        self._worthless_ms = 0  # what became of tickets of before has been forgotten, whatever the grace comes to later
        self._reserved: dict[int, int] = {}  # bucket -> most firm slots in it made of tokens and not yet fetched
        self._reserved_count = 0  # in all of them
        self._room = 0.0  # most tokens beside all those
        self._scale()
        self.tokens = self.burst if rate else 0.0

    @property
    def hints(self) -> int:
        """Hints given and not yet due, of all classes."""
        return sum(hints.outstanding for hints in self.classes)

    def renew_issuer(self) -> None:
        """Become another calendar: promises made so far are foreign from now on."""
        self.issuer = int(self._random() * (1 << 32))

    def succeed(self, issuer: int, firm: float) -> None:
        """Go on for a calendar that is gone: without tokens, behind the firm slots it has promised, which are kept.

        Args:
            issuer: its own.
            firm: refill up to this V belongs to them.
        """
        self._former = issuer
        self.firm = firm
        self.tokens = 0.0

    def advance(self, now: float, paid: float = 0.0) -> None:
        """Let time pass up to `now`: refill the bucket and settle the promises that are over.

        Args:
            paid: refill up to this V was handed out already, by another calendar.
        """
        elapsed = now - self._clock
        if elapsed <= 0 or not self.rate:
            self._clock = max(self._clock, now)
            return
        self._clock = now
        before, firm = self.v, self.firm
        self.v = v = before + elapsed * self._speed
        if paid > before:
            before = paid
        since = before if before > firm else firm
        if v > since:
            tokens = self.tokens + (v - since) * self.first_rate
            self.tokens = tokens if tokens < self._room else self._room
        if self._is_shared:
            for hints in self.classes:
                hints.refill(max(0.0, v - before) * self.first_rate, self.rate)
        if v >= self._next_settle:
            self._plan_settle()
            self._settle()

    def catch_up(self, now: float, seen: float, paid: float) -> None:
        """As `advance`, after an absence in which others have decided in this calendar's place.

        Args:
            seen: V has come this far with them.
            paid: the refill they have handed out ends here; none of it accrues again.
        """
        self.advance(now, paid)
        if seen > self.v:
            self.v = seen
            self._plan_settle()
            self._settle()

    def count_used(self, shown: Ticket, klass: int = 0) -> None:
        """A ticket has admitted somebody in this calendar's absence: it is spent, and a promise of ours is kept."""
        if shown.at_ms >= self._worthless_ms and self._spend(shown):
            self._keep(shown, self.classes[klass])

    def arrive(self, now: float, shown: Ticket | None = None, klass: int = 0) -> Grant:
        """Decide one arrival.

        Args:
            shown: a ticket whose signature is good.
            klass: its class, by position.
        """
        self.advance(now)
        if shown is not None:
            grant = self._redeem(shown, klass)
            if grant is not None:
                return grant
        spent = shown is not None
        if self.tokens >= 1 and self.rate and (not self._is_shared or self._may_take(klass)):
            self._take(klass)
            return _ADMITTED_SPENT if spent else _ADMITTED
        return self._hint(klass, 0.0, spent)

    def reserve(self, now: float, shown: Ticket | None = None, klass: int = 0) -> Grant:
        """As `arrive`, but who would be admitted gets a firm slot for this moment instead, to come with in `hold_s`.

        A firm slot that is due stays what it is: exchanged for a later one, it could be kept for ever. A token set
        aside keeps its place in the bucket until it is fetched, so that what can come in at once never adds up.
        """
        self.advance(now)
        if shown is not None and self._is_good_firm(shown):
            return Grant(True, shown)
        grant = self.arrive(now, shown, klass)
        if not grant.admitted:
            return grant
        slot_ms = floor(self.v * 1000)  # not a moment later: the client may come back at once
        ticket = self._promise("firm", self._firm, slot_ms)
        if ticket is None:
            self.give_back()
            return Grant(False, None, self._far(), grant.spent)
        bucket = slot_ms // BUCKET_MS
        self._reserved[bucket] = self._reserved.get(bucket, 0) + 1
        self._count_reserved(1)
        return Grant(True, ticket, 0.0, grant.spent)

    def hint(self, now: float, shown: Ticket | None = None, least_s: float = 0.0, klass: int = 0) -> Grant:
        """A promise for an arrival that may not come in for another reason, at least `least_s` seconds away.

        A ticket before its time is told again; one that is due is used up, in exchange for the new one.
        """
        self.advance(now)
        if shown is None:
            return self._hint(klass, least_s, False)
        ahead = self._at(shown) - self.v
        if self._is_early(shown) or (self._is_due(shown) and not self.rate):
            return Grant(False, shown, max(least_s, self._told(max(0.0, ahead))))
        spent = not (self._is_due(shown) and self._spend(shown))
        if shown.kind == "hint" and not spent:
            self._keep(shown, self.classes[klass])
        return self._hint(klass, least_s, spent)

    def defer(self, now: float, klass: int = 0) -> Grant:
        """A firm slot for one admission that could not be used, which stays spent.

        Given back, it would let in the next one at once: whoever comes in a loop would be let in without end.
        """
        self.advance(now)
        return self._firm_slot(klass)

    def give_back(self) -> None:
        """Undo one admission that was not used."""
        self.tokens = min(self._room, self.tokens + 1)

    def set_limits(self, limits: Limits, now: float) -> None:
        """Take over burst, classes and times from now on; hints of a class that is there no more are forgotten."""
        self.advance(now)
        self._limits = limits
        self.classes = hints_of(limits.classes, self.classes)
        self._scale()
        self.tokens = min(self._room, self.tokens)

    def set_rate(self, rate: float, now: float) -> None:
        """Change the rate from `now` on; every promise made stretches or shrinks with it."""
        self.advance(now)
        self.first_rate = self.first_rate or rate
        self.rate = rate
        self._scale()
        self.tokens = min(self._room, self.tokens)

    def is_due(self, ticket: Ticket, now: float) -> bool:
        """True from the ticket's time to the end of its grace, while it can be redeemed."""
        self.advance(now)
        return self.rate > 0 and self._is_due(ticket)

    def _scale(self) -> None:
        """Bring what is given in seconds up to the rate, as it is kept in V.

        A hold is as long as it says at any rate: a longer one would let in at once what was promised at a higher rate.
        The other times only keep pace with a rate above the first one.
        """
        limits = self._limits
        self._speed = self.rate / self.first_rate if self.rate else 0.0
        if self.rate or not self.first_rate:
            self._hold = limits.hold_s * self._speed
        faster = max(1.0, self._speed)
        self._grace = limits.grace_s * faster
        self._hint_cap, self._horizon = limits.hint_cap_s * faster, limits.horizon_s * faster
        if self.rate or not self.burst:
            self.burst = float(limits.burst or max(1.0, self.rate))
        self._is_shared = len(self.classes) > 1
        self._count_reserved(0)
        self._plan_settle()

    def _plan_settle(self) -> None:
        """Settle when the next bucket begins, but ten times a second at most."""
        self._next_settle = (int(self.v * _BUCKETS_PER_S) + max(1.0, self._speed)) / _BUCKETS_PER_S

    def _count_reserved(self, change: int) -> None:
        self._reserved_count += change
        self._room = max(0.0, self.burst - self._reserved_count)

    def _may_take(self, klass: int) -> bool:
        """True if a newcomer of this class may have a token, if there is one."""
        return self.classes[klass].allowance >= 1 or not any(hints.outstanding for hints in self.classes[:klass])

    def _take(self, klass: int) -> None:
        self.tokens -= 1
        if self._is_shared:
            self.classes[klass].spend()

    def _redeem(self, shown: Ticket, klass: int) -> Grant | None:
        """What the ticket is worth now; None: nothing, it is spent, over or foreign."""
        kind, at_ms, issuer, serial = shown
        ahead = (at_ms - self._origin_ms) / 1000 - self.v
        if at_ms < self._worthless_ms or not -self._grace <= ahead <= self._horizon + 1:
            return None  # over, or a time nobody can have promised
        if ahead > 0 or not self.rate:  # early; or V stands still, so the ticket keeps until it moves again
            return _make(Grant, (False, shown, ahead if self._speed == 1 else self._told(ahead), False, False, None))
        if not self._spent.spend(issuer, at_ms, serial):
            return None
        if self._keep(shown, self.classes[klass]) and kind == "firm":
            return _ADMITTED
        if self.tokens >= 1:
            self._take(klass)
            return _ADMITTED
        return self._firm_slot(klass)

    def _firm_slot(self, klass: int) -> Grant:
        """The next piece of refill that belongs to nobody; a hint beyond the horizon."""
        v, firm = self.v, self.firm
        if self.rate and firm < v + self._horizon:
            slot = (firm if firm > v else v) + 1 / self.first_rate
            slot_ms = ceil(slot * 1000)
            ticket = self._promise("firm", self._firm, slot_ms)
            if ticket is not None:
                self.firm = slot
                return _make(Grant, (False, ticket, self._told(slot_ms / 1000 - v), False, False, None))
        return self._hint(klass, 0.0, False)

    def _hint(self, klass: int, least_s: float, spent: bool) -> Grant:
        v, firm, mine = self.v, self.firm, self.classes[klass]
        if not self.rate:  # nothing moves: there is nothing to estimate from
            return Grant(False, None, max(least_s, _SLOW_TOLD_S * self._between(0.5, 1)), spent)
        queue = (mine.outstanding + 1) * mine.least_show_rate
        if self._is_shared:
            queue = self._behind_others(klass, queue)
        lead = queue / self.first_rate
        if firm > v:
            lead += firm - v
        if least_s or lead > self._hint_cap:
            lead = self._spread(lead, least_s)
        slot_ms = ceil((v + lead) * 1000)
        ticket = self._promise("hint", mine, slot_ms) if lead <= self._horizon else None
        if ticket is None:
            return Grant(False, None, max(least_s, self._far()), spent)
        mine.outstanding += 1
        told = slot_ms / 1000 - v
        if self._speed != 1:
            told = self._told(told)
        return _make(Grant, (False, ticket, told if told > least_s else least_s, spent, False, None))

    def _behind_others(self, klass: int, queue: float) -> float:
        """Tokens until a class's queue is through: after those before it, or with its share alone, if that is less."""
        ahead = sum(hints.expected for hints in self.classes[:klass])
        share = self.classes[klass].share
        return min(queue + ahead, queue / share) if share else queue + ahead

    def _spread(self, lead: float, least_s: float) -> float:
        """The lead of a hint that would come very late, or must not come too soon."""
        if self._hint_cap < lead <= self._horizon:
            lead = self._hint_cap * self._between(0.5, 1)
        return max(lead, least_s * self._speed)

    def _far(self) -> float:
        return self._limits.horizon_s * self._between(1, 2)

    def _promise(self, kind: Kind, promises: Promises, slot_ms: int) -> Ticket | None:
        at_ms = self._origin_ms + slot_ms
        minute, bucket, issued = at_ms // MINUTE_MS, slot_ms // BUCKET_MS, promises.issued
        serial = self._serials.get(minute, 0)
        if serial >= MOST_SERIALS or at_ms > LATEST_MS:
            return None
        self._serials[minute] = serial + 1
        issued[bucket] = issued.get(bucket, 0) + 1
        return _make(Ticket, (kind, at_ms, self.issuer, serial))

    def _keep(self, shown: Ticket, mine: ClassHints) -> bool:
        """Count one of our own promises as kept; False if it comes too late for that, or is not ours."""
        if not self._is_held(shown):
            return False
        if shown.issuer == self._former:  # its refill is set aside, and nothing else is known of it
            return True
        bucket = (shown.at_ms - self._origin_ms) // BUCKET_MS
        if shown.kind == "hint":
            mine.keep(bucket)
            mine.outstanding = max(0, mine.outstanding - 1)
            return True
        out, reserved = self._firm.keep(bucket), self._reserved.get(bucket, 0)
        if reserved and reserved > out:  # at least one of those fetched was made of a token
            self._reserved[bucket] = reserved - 1
            self._count_reserved(-1)
        return True

    def _settle(self) -> None:
        """Close the buckets whose promises can no longer be kept, oldest first."""
        over = int((self.v - self._hold) * _BUCKETS_PER_S)  # buckets before this one have ended and been held
        for hints in self.classes:
            hints.settle(over, self._settled)
        for bucket, issued, kept in self._firm.close(over, self._settled):
            self._count_reserved(-self._reserved.pop(bucket, 0))
            self.tokens = min(self._room, self.tokens + issued - kept)
        self._settled = max(self._settled, over)
        self._worthless_ms = max(self._worthless_ms, self._origin_ms + int((self.v - self._grace) * 1000))
        self._spent.forget_before(self._worthless_ms)
        for minute in [minute for minute in self._serials if minute < self._worthless_ms // MINUTE_MS]:
            del self._serials[minute]

    def _is_early(self, ticket: Ticket) -> bool:
        """True before the ticket's time; False too for a time nobody can have promised."""
        return 0 < self._at(ticket) - self.v <= self._horizon + 1

    def _is_good_firm(self, ticket: Ticket) -> bool:
        """True for a firm slot of our own that would be admitted now."""
        if ticket.kind != "firm" or not self.rate or self.v < self._at(ticket):
            return False
        return self._is_held(ticket) and not self._is_spent(ticket)

    def _is_held(self, ticket: Ticket) -> bool:
        """True for a promise of our own, or a firm slot of the former calendar, that is not over yet."""
        slot_ms = ticket.at_ms - self._origin_ms
        is_ours = ticket.issuer == self.issuer or (ticket.issuer == self._former and ticket.kind == "firm")
        if not is_ours or slot_ms // BUCKET_MS < self._settled:
            return False
        return self.v <= slot_ms / 1000 + self._hold

    def _is_due(self, ticket: Ticket) -> bool:
        return 0 <= self.v - self._at(ticket) <= self._grace and ticket.at_ms >= self._worthless_ms

    def _told(self, ahead: float) -> float:
        """Seconds from now to tell a client whose ticket is for this much later in V."""
        speed = self._speed
        if speed >= 1:
            return ahead / speed
        most = _SLOW_TOLD_S * self._between(0.5, 1)
        return min(most, ahead / speed) if speed else most

    def _spend(self, ticket: Ticket) -> bool:
        return self._spent.spend(ticket.issuer, ticket.at_ms, ticket.serial)

    def _is_spent(self, ticket: Ticket) -> bool:
        return self._spent.is_spent(ticket.issuer, ticket.at_ms, ticket.serial)

    def _at(self, ticket: Ticket) -> float:
        return (ticket.at_ms - self._origin_ms) / 1000

    def _between(self, low: float, high: float) -> float:
        return low + (high - low) * self._random()
