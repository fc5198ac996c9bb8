"""What must stay true whatever clients, operators and clocks do.

The machine puts the whole decision before a mob: newcomers, tickets shown early, due, late, twice, foreign and
altered, pre-flights, permits released at any time and twice, admissions given back, arrivals screened together,
clocks that jump, rates, fractions and drains. A model beside it knows only the rules.
"""

import random
from collections import Counter
from typing import ClassVar

from hypothesis import assume, given, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from herdgate.core.admission import AdmissionControl, keep_share
from herdgate.core.answers import Admitted, Arrival, Denied, Queued
from herdgate.core.calendar import Calendar
from herdgate.core.clients import Client
from herdgate.core.limits import ClientLimits, Limits
from herdgate.core.permits import Permit
from herdgate.core.spent import MINUTE_MS, SpentTickets
from herdgate.core.tickets import Kind, Ticket, TicketSigner
from herdgate.stores.memory import MemoryStore
from tests.herdgate.core.crowds import ORIGIN_MS, SECRET, Book, CalendarDoor

CLIENTS = [Client(f"id:{number}", f"ip:192.0.2.{number}", identified=True) for number in range(5)]
SIGNER = TicketSigner([SECRET])
MOST_TICKETS = 60
MARGIN_S = 0.002  # a slot is a whole millisecond, and what is due exactly then is the calendar's to say

clients = st.sampled_from(CLIENTS)
steps_s = st.one_of(
    st.floats(0, 0.2), st.floats(0, 3), st.sampled_from([0.0, 0.1, 1.4999, 1.5, 1.6, 5.0, 90.0]), st.floats(-100, -0.01)
)
picks = st.integers(0, MOST_TICKETS - 1)


class Mob(RuleBasedStateMachine):
    """The mob before one gate, and the model it is held against."""

    horizon_s: ClassVar[float] = 20.0

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.tickets: list[str] = []
        self.permits: list[tuple[Permit, Client]] = []
        self.released: list[Permit] = []
        self.redeemed: Counter[str] = Counter()
        self.spent: set[str] = set()

    @initialize(
        rate=st.sampled_from([0.5, 4.0, 30.0, 7.3]),
        burst=st.sampled_from([None, 1, 3.5, 20]),
        seed=st.integers(0, 9),
        caps=st.sampled_from([(None, None), (None, None), (6, None), (30, 3)]),
        client_rate=st.sampled_from([None, None, 2.0]),
    )
    def begin(
        self,
        rate: float,
        burst: float | None,
        seed: int,
        caps: tuple[int | None, int | None],
        client_rate: float | None,
    ) -> None:
        self.first_rate = rate
        self.max_open, self.client_open = caps
        self.limits = Limits(
            rate=rate,
            burst=burst,
            max_open=self.max_open,
            client=ClientLimits(rate=client_rate, open=self.client_open),
            max_clients=3,
            grace_s=8,
            hint_cap_s=5,
            horizon_s=self.horizon_s,
        )
        draw = random.Random(seed).random
        self.store = MemoryStore(self.limits, draw, 0.0, ORIGIN_MS)
        self.control = AdmissionControl(self.limits, [SIGNER], self.store, draw)
        self.other = Calendar(self.limits, random.Random(seed + 100).random, 0.0, ORIGIN_MS)
        self.book = Book(rate)

    @property
    def calendar(self) -> Calendar:
        assert isinstance(self.store.calendar, Calendar)
        return self.store.calendar

    # What the mob does.

    @rule(step_s=steps_s)
    def pass_time(self, step_s: float) -> None:
        self.now += step_s

    @rule(client=clients, arrivals=st.integers(1, 40))
    def newcomers(self, client: Client, arrivals: int) -> None:
        for _ in range(arrivals):
            self._decide(client, None)

    @precondition(lambda self: self.tickets)
    @rule(client=clients, first=picks, shown=st.integers(1, 20), times=st.integers(1, 2), settle=st.booleans())
    def show(self, client: Client, first: int, shown: int, times: int, settle: bool) -> None:
        for text in self.tickets[first % len(self.tickets) :][:shown] * times:
            self._decide(client, text, only_screen=not settle)

    @precondition(lambda self: self.tickets)
    @rule(client=clients, pick=picks, late_s=st.sampled_from([0.003, 0.7, 1.49, 1.51, 1.65, 4.0, 9.0]))
    def show_at_its_time(self, client: Client, pick: int, late_s: float) -> None:
        text = self.tickets[pick % len(self.tickets)]
        self._go_to(self._slot(text) + late_s)
        self._decide(client, text)

    @precondition(lambda self: self.control.state == "open" and self.book.rate)
    @rule(client=clients, arrivals=st.integers(5, 30), late_s=st.sampled_from([0.003, 1.0, 1.49, 1.7]), obeying=picks)
    def crowd(self, client: Client, arrivals: int, late_s: float, obeying: int) -> None:
        """Newcomers who come at their hint, together, and some of them at their firm slots."""
        self.newcomers(client, arrivals)
        self._go_to(max((self._slot(text) for text in self.tickets), default=0.0) + 0.003)
        self.newcomers(client, arrivals)  # who leave no token
        hints = self.tickets[-arrivals:]
        for text in hints:
            self._decide(client, text)
        slots = [text for text in self.tickets if text not in hints]
        for text in sorted(slots, key=self._slot)[:obeying]:
            self._go_to(self._slot(text) + late_s)
            self._decide(client, text)
            while self.permits:
                self.leave(0, 1, False)

    @rule(client=clients, early=st.booleans(), kind=st.sampled_from(["hint", "firm"]))
    def show_foreign(self, client: Client, early: bool, kind: Kind) -> None:
        """A ticket of another calendar with the same secrets."""
        self._advance()
        at_ms = ORIGIN_MS + int(self._v * 1000) + (1_000 if early else 0)
        text = SIGNER.sign(Ticket(kind, at_ms, self.other.issuer, random.Random(at_ms).randrange(1000)))
        self._keep(text)
        self._decide(client, text)

    @rule(client=clients, text=st.one_of(st.text(max_size=40), st.just("1." + "A" * 34)))
    def show_garbage(self, client: Client, text: str) -> None:
        self._decide(client, text)

    @precondition(lambda self: self.tickets)
    @rule(client=clients, pick=picks, place=st.integers(2, 35))
    def show_altered(self, client: Client, pick: int, place: int) -> None:
        text = self.tickets[pick % len(self.tickets)]
        altered = text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]
        # The last character holds two bits that mean nothing.
        assume(place < 35)
        assert SIGNER.read(altered) is None
        self._decide(client, altered)

    @rule(client=clients, asked=st.integers(1, 20), pick=st.none() | picks)
    def preflight(self, client: Client, asked: int, pick: int | None) -> None:
        text = self.tickets[pick % len(self.tickets)] if pick is not None and self.tickets else None
        for _ in range(asked):
            self._reserve(client, text)

    @rule(client=clients, together=st.integers(2, 6), pick=st.none() | picks)
    def screened_together(self, client: Client, together: int, pick: int | None) -> None:
        """As a store does that answers later: the caps are asked again when the answer comes."""
        self._advance()
        text = self.tickets[pick % len(self.tickets)] if pick is not None and self.tickets else None
        screened = [self.control.screen(Arrival(client, text), self.now) for _ in range(together)]
        queued = [each for each in screened if isinstance(each, Queued)]
        granted = [(each, self.store.grant(each, self.now)) for each in queued]
        for each, grant in granted:
            verdict = self.control.settle(each, grant, self.now)
            self._note_verdict(client, text, verdict, honest=grant.admitted and not grant.spent)

    @precondition(lambda self: self.permits)
    @rule(pick=picks, times=st.integers(1, 3), opened=st.booleans())
    def leave(self, pick: int, times: int, opened: bool) -> None:
        permit, _ = self.permits.pop(pick % len(self.permits))
        if opened:
            permit.opened()
        for _ in range(times):
            permit.release()
        permit.opened()
        self.released.append(permit)

    @precondition(lambda self: self.released)
    @rule()
    def release_again(self) -> None:
        for permit in self.released[-5:]:
            permit.release()

    @precondition(lambda self: self.permits)
    @rule(pick=picks)
    def open(self, pick: int) -> None:
        self.permits[pick % len(self.permits)][0].opened()

    @rule(factor=st.sampled_from([0.0, 0.1, 0.5, 1.0, 1.0, 2.0, 20.0]))
    def change_rate(self, factor: float) -> None:
        self._advance()
        self.store.set_rate(self.first_rate * factor, self.now)
        self.book.set_rate(self.first_rate * factor, self.now)

    @rule(fraction=st.sampled_from([0.0, 0.5, 1.0, 1.0]))
    def change_fraction(self, fraction: float) -> None:
        self.control.set_admit_fraction(fraction)

    @rule(draining=st.sampled_from([True, False, False]))
    def drain_or_resume(self, draining: bool) -> None:
        self.control.state = "draining" if draining else "open"

    # What must be true of it.

    @invariant()
    def bound_holds(self) -> None:
        """11.1."""
        assert self.book.excess <= self.book.bound(self.limits)

    @invariant()
    def bucket_is_neither_negative_nor_over_its_burst(self) -> None:
        assert 0 <= self.calendar.tokens <= self.calendar.burst
        assert self.calendar.hints >= 0
        assert 0 <= self.calendar.classes[0].show_rate <= 1

    @invariant()
    def every_ticket_admits_at_most_once(self) -> None:
        """11.2."""
        assert max(self.redeemed.values(), default=0) <= 1

    @invariant()
    def permits_are_those_taken_and_not_released(self) -> None:
        """11.3."""
        permits = self.control.permits
        assert permits.pending >= 0
        assert permits.open >= 0
        assert permits.pending + permits.open == len(self.permits)
        assert self.max_open is None or len(self.permits) <= self.max_open
        held = Counter(client.key for _, client in self.permits)
        if self.client_open is not None:
            assert max(held.values(), default=0) <= self.client_open
        addresses = {client.address for _, client in self.permits}
        networks = {client.network for _, client in self.permits} - {None}
        assert len(permits.sockets) == len(held) + len(addresses) + len(networks)

    @invariant()
    def memory_is_bounded(self) -> None:
        """11.4: by times and the number of keys, not by arrivals."""
        calendar = self.calendar
        faster = max(1.0, self.book.highest_rate / self.first_rate) if self.first_rate else 1.0
        times = (self.horizon_s + self.limits.grace_s) * faster
        promises = (calendar._firm, *calendar.classes)
        for counts in (*(made.issued for made in promises), *(made.kept for made in promises), calendar._reserved):
            assert len(counts) <= 10 * times + 20
        assert len(calendar._serials) <= times * 1000 / MINUTE_MS + 3
        assert self.control.client_keys <= 3 + 3 * len(self.permits)

    def teardown(self) -> None:
        """11.3: in the end everything that was taken is back."""
        for permit, _ in self.permits:
            permit.release()
        if hasattr(self, "control"):
            permits = self.control.permits
            assert (permits.pending, permits.open, len(permits.sockets)) == (0, 0, 0)

    # The model.

    @property
    def _v(self) -> float:
        return self.book.refill / self.first_rate

    def _slot(self, text: str) -> float:
        ticket = SIGNER.read(text)
        assert ticket is not None
        return (ticket.at_ms - ORIGIN_MS) / 1000

    def _advance(self) -> None:
        self.book.advance(self.now)
        self._latest = max(getattr(self, "_latest", 0.0), self.now)

    def _go_to(self, v: float) -> None:
        """Let time pass up to this refill time, if it is still to come and the rate lets it come."""
        self._advance()
        if v > self._v and self.book.rate:
            self.now = self._latest + (v - self._v) * self.first_rate / self.book.rate

    def _keep(self, text: str | None) -> None:
        if text and text not in self.tickets:
            self.tickets = [*self.tickets[-MOST_TICKETS + 1 :], text]

    def _decide(self, client: Client, text: str | None, *, only_screen: bool = False) -> None:
        self._advance()
        must_admit = text is not None and self._is_good_firm_slot(text) and self._refusal(client) is None
        screened = self.control.screen(Arrival(client, text), self.now)
        if only_screen:  # the client is gone before its turn: nothing was taken
            return
        if isinstance(screened, Denied):
            self._note_verdict(client, text, screened, honest=False)
            assert not must_admit, screened
            return
        grant = self.store.grant(screened, self.now)
        verdict = self.control.settle(screened, grant, self.now)
        assert not must_admit or isinstance(verdict, Admitted), (verdict, self._v)
        self._note_verdict(client, text, verdict, honest=grant.admitted and not grant.spent)

    def _reserve(self, client: Client, text: str | None) -> None:
        self._advance()
        screened = self.control.screen(Arrival(client, text), self.now)
        if isinstance(screened, Denied):
            return
        grant = self.store.reserve(screened, self.now)
        answer = self.control.settle_reserved(screened, grant, self.now)
        if isinstance(answer, str):
            self._keep(answer)
            if text and answer != text:
                self.spent.add(text)
        else:
            self._note_denial(text, answer)

    def _is_good_firm_slot(self, text: str) -> bool:
        ticket = SIGNER.read(text)
        if ticket is None or ticket.kind != "firm" or ticket.issuer != self.calendar.issuer or not self.book.rate:
            return False
        late = self._v - self._slot(text)
        hold = self.limits.hold_s * min(
            1.0, self.book.lowest_rate / self.first_rate
        )  # in refill time, at any rate so far
        return text not in self.spent and MARGIN_S <= late <= hold - MARGIN_S

    def _refusal(self, client: Client) -> str | None:
        """What may keep even a firm slot out."""
        if self.control.state == "draining":
            return "draining"
        if keep_share(client.key) >= self.control.admit_fraction < 1:
            return "shed"
        if self.client_open is not None and sum(c == client for _, c in self.permits) >= self.client_open:
            return "client_open"
        return "full" if self.max_open is not None and len(self.permits) >= self.max_open else None

    def _note_verdict(self, client: Client, text: str | None, verdict: Admitted | Denied, *, honest: bool) -> None:
        if isinstance(verdict, Denied):
            if honest and text:  # granted, and given back for another reason
                self.spent.add(text)
            self._note_denial(text, verdict)
            return
        self.book.admit(self.now)
        self.permits.append((verdict.permit, client))
        if text and SIGNER.read(text) and honest:
            self.redeemed[text] += 1
            self.spent.add(text)

    def _note_denial(self, text: str | None, denied: Denied) -> None:
        assert denied.retry_s is not None
        assert 0 <= denied.retry_s <= 700
        self._keep(denied.ticket)
        if text and denied.ticket and denied.ticket != text and denied.reason == "rate":
            self.spent.add(text)


Mob.TestCase.settings = settings(max_examples=80, stateful_step_count=50)
test_mob = Mob.TestCase


@settings(max_examples=50)
@given(
    steps=st.lists(st.tuples(st.floats(-20, 120), st.integers(0, 40)), max_size=40),
    rate=st.floats(0.1, 50),
    burst=st.none() | st.floats(1, 50),
)
def test_clock_jumps_never_break_the_bound(steps: list[tuple[float, int]], rate: float, burst: float | None) -> None:
    """CASES 2.16, for any sequence of steps ahead and back."""
    door = CalendarDoor(Limits(rate=rate, burst=burst), seed=1)
    now = 0.0
    for step_s, arrivals in steps:
        now += step_s
        for _ in range(arrivals):
            told = door.arrive(now)
            assert 0 <= told.told_s <= 1200
    assert door.book.excess <= door.calendar.burst + 1e-6, "no promise was redeemed, so not even a late slot"
    assert 0 <= door.calendar.tokens <= door.calendar.burst


@settings(max_examples=50)
@given(
    changes=st.lists(st.tuples(st.floats(0, 20), st.sampled_from([0.0, 0.3, 1.0, 4.0])), max_size=30),
    rate=st.floats(0.1, 1000),
)
def test_refill_is_the_integral_of_the_rate(changes: list[tuple[float, float]], rate: float) -> None:
    calendar, book, now = Calendar(Limits(rate=rate), lambda: 0.5, 0.0), Book(rate), 0.0
    for lasts_s, factor in changes:
        calendar.set_rate(rate * factor, now)
        book.set_rate(rate * factor, now)
        now += lasts_s
    calendar.advance(now)
    book.advance(now)
    assert abs(calendar.v * rate - book.refill) <= 1e-6 * (1 + book.refill)


@settings(max_examples=50)
@given(
    shown=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3 * MINUTE_MS), st.integers(0, 400)), max_size=80),
    most_bytes=st.sampled_from([0, 3, 30, 10_000]),
)
def test_no_ticket_is_spent_twice_however_little_room_there_is(
    shown: list[tuple[int, int, int]], most_bytes: int
) -> None:
    spent, seen = SpentTickets(most_bytes), set()
    for issuer, at_ms, serial in shown * 2:
        key = issuer, at_ms // MINUTE_MS, serial
        if spent.spend(issuer, at_ms, serial):
            assert key not in seen
            seen.add(key)
        else:
            note(f"{key} refused")
            assert key in seen or most_bytes < 10_000
        assert spent.is_spent(issuer, at_ms, serial) is (key in seen)
        assert spent.bytes <= most_bytes
