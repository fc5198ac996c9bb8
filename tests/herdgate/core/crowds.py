"""Crowds before a calendar: a discrete-event simulation, and a book that knows what the bound allows.

A *door* is a way to a calendar; the book beside it integrates the rate on its own and writes down every admission in
refill terms: how many admissions the rate had paid for by then. `drive` lets groups of clients, each with a
behaviour, arrive, be told, and come back. Nothing here waits or reads a clock.
"""

import heapq
import random
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from herdgate.core.admission import AdmissionControl
from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.calendar import Calendar
from herdgate.core.clients import Client
from herdgate.core.grant import Grant
from herdgate.core.limits import Limits
from herdgate.core.promises import BUCKET_MS
from herdgate.core.tickets import Ticket, TicketSigner
from herdgate.stores.memory import MemoryStore

ORIGIN_MS = 1_700_000_000_000
SECRET = b"the secret of every crowd"

Shown = Ticket | str | None


class Book:
    """The admissions of one calendar, and the refill they are measured against.

    Attributes:
        admitted: for every admission, the refill (in admissions) up to then.
        moments: for every admission, when it was.
        highest_rate: the highest there ever was.
        lowest_rate: the lowest, 0 apart.
    """

    def __init__(self, rate: float, now: float = 0.0) -> None:
        self.rate = self.highest_rate = self.lowest_rate = rate
        self.refill = 0.0
        self.admitted: list[float] = []
        self.moments: list[float] = []
        self._now = now

    def advance(self, now: float) -> None:
        """Let the rate pay up to `now`; a clock that went back pays nothing."""
        if now > self._now:
            self.refill += (now - self._now) * self.rate
            self._now = now

    def set_rate(self, rate: float, now: float) -> None:
        self.advance(now)
        self.rate = rate
        self.highest_rate = max(self.highest_rate, rate)
        self.lowest_rate = min(self.lowest_rate or rate, rate or self.lowest_rate)

    def admit(self, now: float) -> None:
        """Write down an admission; `advance` comes first, as for every arrival: a clock may go back after it."""
        self.admitted.append(self.refill)
        self.moments.append(now)

    @property
    def excess(self) -> float:
        """The most admissions of any window, beyond what the rate paid in it: to be held against the burst.

        Of all windows that end with admission j, the one with the least (i - refill i) as its first holds the most.
        """
        most, least = 0.0, float("inf")
        for index, refill in enumerate(self.admitted):
            least = min(least, index - refill)
            most = max(most, index + 1 - refill - least)
        return most

    def bound(self, limits: Limits) -> float:
        """What `excess` may come to, whatever clients do: the burst, firm slots of `hold_s` and one bucket taken or
        given back late, a millisecond of rounding, and one slot whose refill began before the window.
        """
        burst = limits.burst or max(1.0, self.highest_rate)
        return burst + self.highest_rate * (limits.hold_s + BUCKET_MS / 1000 + 0.001) + 1


class Answer(NamedTuple):
    """What a client is told."""

    admitted: bool
    ticket: Shown
    told_s: float
    firm: bool


class Door(Protocol):
    """A way to one calendar."""

    book: Book

    def arrive(self, now: float, shown: Shown = None) -> Answer: ...

    def set_rate(self, rate: float, now: float) -> None: ...


class CalendarDoor:
    """The calendar alone."""

    def __init__(self, limits: Limits, seed: int, now: float = 0.0) -> None:
        self.limits = limits
        self.calendar = Calendar(limits, random.Random(seed).random, now, ORIGIN_MS)
        self.book = Book(limits.rate or 0.0, now)

    def arrive(self, now: float, shown: Shown = None) -> Answer:
        assert not isinstance(shown, str)
        self.book.advance(now)
        grant = self.calendar.arrive(now, shown)
        if grant.admitted:
            self.book.admit(now)
        return _answer(grant)

    def reserve(self, now: float, shown: Shown = None) -> Answer:
        """A pre-flight: `admitted` means that the ticket is a firm slot for this moment."""
        assert not isinstance(shown, str)
        self.book.advance(now)
        return _answer(self.calendar.reserve(now, shown))

    def set_rate(self, rate: float, now: float) -> None:
        self.calendar.set_rate(rate, now)
        self.book.set_rate(rate, now)

    @property
    def bound(self) -> float:
        """What `book.excess` may come to, whatever clients do."""
        return self.book.bound(self.limits)


class ControlDoor:
    """The whole decision: admission control, memory store, tickets as signed text."""

    def __init__(self, limits: Limits, seed: int, now: float = 0.0) -> None:
        draw = random.Random(seed).random
        self.store = MemoryStore(limits, draw, now, ORIGIN_MS)
        self.control = AdmissionControl(limits, [TicketSigner([SECRET])], self.store, draw)
        self.book = Book(limits.rate or 0.0, now)

    def arrive(self, now: float, shown: Shown = None) -> Answer:
        assert not isinstance(shown, Ticket)
        self.book.advance(now)
        verdict = self._decide(Arrival(Client("ip:192.0.2.1", "ip:192.0.2.1"), shown), now)
        if isinstance(verdict, Admitted):
            self.book.admit(now)
            verdict.permit.release()
            return Answer(True, None, 0.0, False)
        return Answer(False, verdict.ticket, verdict.retry_s or 0.0, verdict.firm)

    def set_rate(self, rate: float, now: float) -> None:
        self.store.set_rate(rate, now)
        self.book.set_rate(rate, now)

    def _decide(self, arrival: Arrival, now: float) -> Admitted | Denied:
        screened = self.control.screen(arrival, now)
        if isinstance(screened, Denied):
            return screened
        return self.control.settle(screened, self.store.grant(screened, now), now)


class Retry(NamedTuple):
    """Come back in `delay_s` and show this."""

    delay_s: float
    shown: Shown


Behaviour = Callable[[Answer, int, random.Random], Retry | None]
"""(what the client is told, how often it has tried, random source) -> its next try; None: it never comes back."""


def obey(told: Answer, tries: int, rng: random.Random) -> Retry:
    """Comes when told, with its ticket, a network's delay later."""
    return Retry(told.told_s + rng.uniform(0.01, 0.3), told.ticket)


def obey_at_once(told: Answer, tries: int, rng: random.Random) -> Retry:
    """Comes when told, to the microsecond: it never takes a firm slot late."""
    return Retry(told.told_s + 1e-6, told.ticket)


def obey_late(told: Answer, tries: int, rng: random.Random) -> Retry:
    """Fetches firm slots at the very end of their hold."""
    return Retry(told.told_s + (1.5 - 2e-6 if told.firm else 1e-6), told.ticket)


def obey_hint_only(told: Answer, tries: int, rng: random.Random) -> Retry:
    """Comes when told, but knows nothing of tickets."""
    return Retry(told.told_s + rng.uniform(0.01, 0.3), None)


def every_second(told: Answer, tries: int, rng: random.Random) -> Retry:
    return Retry(1.0, None)


def every_15_s(told: Answer, tries: int, rng: random.Random) -> Retry:
    return Retry(15.0, None)


def five_times_a_second(told: Answer, tries: int, rng: random.Random) -> Retry:
    return Retry(0.2, None)


def every_second_with_ticket(told: Answer, tries: int, rng: random.Random) -> Retry:
    """Ignores the time, as a cookie makes a client do."""
    return Retry(1.0, told.ticket)


def full_jitter(told: Answer, tries: int, rng: random.Random) -> Retry:
    """Ignores everything: uniform up to 2, 4, 8, 16, then 30 seconds."""
    return Retry(max(0.1, rng.uniform(0, min(30, 2 ** min(tries, 6)))), None)


def never_return(told: Answer, tries: int, rng: random.Random) -> None:
    return None


def never_fetch(told: Answer, tries: int, rng: random.Random) -> Retry | None:
    """Comes at its hint, and is gone once it has a firm slot."""
    return None if told.firm else Retry(told.told_s + 0.1, told.ticket)


class Group(NamedTuple):
    """Clients of one behaviour that arrive first at a time drawn from `first` to `last`."""

    behaviour: Behaviour
    clients: int
    first: float
    last: float


class Figures(NamedTuple):
    """How one group fared. Tries and waits are those of the clients that are back."""

    back: int
    tries: float
    longest_wait_s: float


class Event(NamedTuple):
    """One arrival; `client` breaks ties, so that shown tickets are never compared."""

    at: float
    client: int
    shown: Shown
    held: bool


class Crowd:
    """The state of one simulation.

    Attributes:
        back: client -> when it was admitted.
    """

    def __init__(self, door: Door, groups: Sequence[Group], seed: int, max_wait_s: float) -> None:
        self.back: dict[int, float] = {}
        self._door = door
        self._rng = random.Random(seed)
        self._max_wait_s = max_wait_s
        self._group_of = [group for group in groups for _ in range(group.clients)]
        self._began = [self._rng.uniform(group.first, group.last) for group in self._group_of]
        self._tries = [0] * len(self._began)
        self._events = [Event(at, client, None, False) for client, at in enumerate(self._began)]
        heapq.heapify(self._events)

    def run(self, until: float, rates: Iterable[tuple[float, float]]) -> None:
        """Let everything happen up to `until`; `rates`: (moment, new rate), in order."""
        for moment, rate in rates:
            self._run(moment)
            self._door.set_rate(rate, moment)
        self._run(until)

    def figures(self, group: Group) -> Figures:
        clients = [client for client in self.back if self._group_of[client] is group]
        tries = sum(self._tries[client] for client in clients)
        waits = [self.back[client] - self._began[client] for client in clients]
        return Figures(len(clients), tries / max(1, len(clients)), max(waits, default=0.0))

    def _run(self, until: float) -> None:
        while self._events and self._events[0].at < until:
            self._arrive(heapq.heappop(self._events))

    def _arrive(self, event: Event) -> None:
        client = event.client
        self._tries[client] += not event.held
        told = self._door.arrive(event.at, event.shown)
        if told.admitted:
            self.back[client] = event.at
        elif told.firm and told.told_s <= self._max_wait_s:  # held open until its slot
            self._push(Event(event.at + told.told_s + 1e-6, client, told.ticket, True))
        elif retry := self._group_of[client].behaviour(told, self._tries[client], self._rng):
            self._push(Event(event.at + retry.delay_s, client, retry.shown, False))

    def _push(self, event: Event) -> None:
        heapq.heappush(self._events, event)


def drive(
    door: Door,
    groups: Sequence[Group],
    *,
    seed: int = 1,
    max_wait_s: float = 0.5,
    rates: Iterable[tuple[float, float]] = (),
    until: float = 2000.0,
) -> Crowd:
    """Simulate `groups` before `door` up to `until`, and return what became of them."""
    crowd = Crowd(door, groups, seed, max_wait_s)
    crowd.run(until, rates)
    return crowd


def _answer(grant: Grant) -> Answer:
    ticket = grant.ticket
    return Answer(grant.admitted, ticket, grant.told_s, ticket is not None and ticket.kind == "firm")
