"""What `herdgate bench decide` times: decisions of the core, and the plainest keyed rate limiter as their measure.

The crowd is a replay: 10,000 clients reconnect in one second before a rate of 500, most of them obey, some do not, and
every arrival until the last of them is in is recorded with the ticket it shows. Below it, the paths: arrivals of one
kind each. A full denial goes from the arrival of a newcomer to the bytes of its refusal.
"""

import heapq
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.calendar import Calendar
from herdgate.core.clients import AddressRules
from herdgate.core.gcra import KeyedGcra
from herdgate.core.grant import Grant
from herdgate.core.limits import ClientLimits, Limits
from herdgate.core.tickets import Ticket
from herdgate.denial import Headers, http_denial
from herdgate.gate import Gate
from herdgate_loadtest.errors import CrowdError

__all__ = ["CASES", "TURN", "UNTIMED", "Case", "PlainGcra", "Steps", "check_crowd", "decide", "plain_step", "turns"]

RATE = 500
CLIENTS = 10_000
KEYS = 1_000
KEYED_STEPS = 20_000
STEPS = 1_900  # of one path
TICK_S = 1e-7  # between arrivals of one path: time passes, but all of them together earn no token
ORIGIN_MS = 1_700_000_000_000
TURN, UNTIMED = 1_000, 200
"""Steps of one turn, and how many of them are not timed."""

Steps = tuple[Callable[..., object], list[object], list[object]]
"""A call and what it is called with, step by step."""


class Case(NamedTuple):
    """What is timed.

    Attributes:
        name: as in the report.
        prepare: makes fresh state, untimed.
        loops: times that it is gone through for one value, some 30 ms.
    """

    name: str
    prepare: Callable[[], Steps]
    loops: int


class PlainGcra:
    """The baseline: GCRA with a dict, and nothing else. No bound, no expiry, no order, no promise."""

    __slots__ = ("_interval", "_tats", "_tolerance")

    def __init__(self, rate: float, burst: float) -> None:
        self._interval = 1 / rate
        self._tolerance = (burst - 1) / rate
        self._tats: dict[str, float] = {}

    def step(self, key: str, now: float) -> float:
        """Seconds to wait; 0.0 for an arrival that conforms, which is charged."""
        tat = self._tats.get(key, now)
        if tat < now:
            tat = now
        early = tat - now - self._tolerance
        if early > 0:
            return early
        self._tats[key] = tat + self._interval
        return 0.0


def keyed_arrivals() -> tuple[list[object], list[object]]:
    """Keys and times: 1,000 clients, each about once a second. At half of that, 2 of 3 conform."""
    rng = random.Random(1)
    keys: list[object] = [f"ip:192.0.{rng.randrange(KEYS)}.1" for _ in range(KEYED_STEPS)]
    return keys, [step / KEYS for step in range(KEYED_STEPS)]


def plain_step() -> Steps:
    return PlainGcra(0.5, 5).step, *keyed_arrivals()


def keyed_step() -> Steps:
    gcra = KeyedGcra(0.5, 5, most_keys=100_000)

    def step(key: str, now: float) -> float:
        wait = gcra.wait(key, now)
        if not wait:
            gcra.charge(key, now)
        return wait

    return step, *keyed_arrivals()


def new_calendar(burst: float | None = None) -> Calendar:
    return Calendar(Limits(rate=RATE, burst=burst), random.Random(1).random, 0.0, ORIGIN_MS)


@cache
def crowd_arrivals() -> tuple[list[object], list[object]]:
    """Times and tickets shown, from the first arrival to the last admission."""
    rng, calendar = random.Random(2), new_calendar()
    events: list[tuple[float, int, Ticket | None]] = [(rng.random(), client, None) for client in range(CLIENTS)]
    heapq.heapify(events)
    times: list[object] = []
    tickets: list[object] = []
    while events:
        now, client, shown = heapq.heappop(events)
        times.append(now)
        tickets.append(shown)
        grant = calendar.arrive(now, shown)
        if not grant.admitted:
            heapq.heappush(events, (now + delay_s(client, grant, rng), client, next_ticket(client, grant)))
    return times, tickets


def delay_s(client: int, grant: Grant, rng: random.Random) -> float:
    """Seven of ten come when told, a network's delay later; the others come every second."""
    return grant.told_s + rng.uniform(0.01, 0.3) if client % 10 < 7 else 1.0


def next_ticket(client: int, grant: Grant) -> Ticket | None:
    """Seven of ten show their ticket: six of those who come when told, and one of those who do not."""
    return grant.ticket if client % 10 not in (6, 8, 9) else None


def crowd_step() -> Steps:
    return new_calendar().arrive, *crowd_arrivals()


def check_crowd() -> None:
    """A fresh calendar answers the replay as it was recorded.

    Raises:
        CrowdError: it does not.
    """
    arrive, times, tickets = crowd_step()
    grants = [arrive(now, shown) for now, shown in zip(times, tickets, strict=True)]
    if sum(isinstance(grant, Grant) and grant.admitted for grant in grants) != CLIENTS:
        raise CrowdError("the replay of the crowd is not what was recorded: report it")


def from_now(now: float) -> list[object]:
    return [now + (step + 1) * TICK_S for step in range(STEPS)]


def empty_bucket(now: float = 0.0, calendar: Calendar | None = None) -> Calendar:
    calendar = calendar or new_calendar()
    calendar.advance(now)
    while calendar.tokens >= 1:
        calendar.arrive(now)
    return calendar


def take_promises(calendar: Calendar, now: float, shown: list[object] | None = None) -> list[object]:
    """The tickets of as many denials."""
    tickets: list[object] = []
    for ticket in shown or [None] * STEPS:
        assert ticket is None or isinstance(ticket, Ticket)
        tickets.append(calendar.arrive(now, ticket).ticket)
    return tickets


def newcomer_admitted() -> Steps:
    return new_calendar(burst=STEPS).arrive, from_now(0.0), [None] * STEPS


def newcomer_hinted() -> Steps:
    return empty_bucket().arrive, from_now(0.0), [None] * STEPS


def early_ticket() -> Steps:
    calendar = empty_bucket()
    return calendar.arrive, from_now(0.0), take_promises(calendar, 0.0)


def due_hint_admitted() -> Steps:
    calendar = empty_bucket(calendar=new_calendar(burst=STEPS))
    return calendar.arrive, from_now(5.0), take_promises(calendar, 0.0)


def due_hint_firm() -> Steps:
    calendar = empty_bucket()
    hints = take_promises(calendar, 0.0)
    empty_bucket(4.0, calendar)
    return calendar.arrive, from_now(4.0), hints


def due_firm_admitted() -> Steps:
    calendar = empty_bucket()
    hints = take_promises(calendar, 0.0)
    empty_bucket(4.0, calendar)
    slots = take_promises(calendar, 4.0, hints)
    return calendar.arrive, [4.002 + (step + 1) / RATE for step in range(STEPS)], slots


def spent_hint_hinted() -> Steps:
    calendar = empty_bucket()
    hints = take_promises(calendar, 0.0)
    empty_bucket(4.0, calendar)
    take_promises(calendar, 4.0, hints)
    return calendar.arrive, from_now(4.0), hints


def decide(gate: Gate, arrival: Arrival) -> Admitted | Denied:
    """The gate's decision, without a loop: this one waits for nobody."""
    try:
        gate.decide(arrival).send(None)
    except StopIteration as end:
        decided: Admitted | Denied = end.value
        return decided
    raise RuntimeError("the gate waits")


def denial_of(limits: Limits) -> Steps:
    """From the arrival of a newcomer to the bytes of its denial."""
    moments = iter([0.0, *[0.0] * RATE, *[(step + 1) * TICK_S for step in range(STEPS)]])
    gate = Gate(limits, secrets=[b"a secret of a benchmark"], clock=moments.__next__, rng=random.Random(1).random)
    rules = AddressRules()
    for client in range(RATE):
        decide(gate, Arrival(rules.client(f"198.51.{client % 250}.{client // 250}")))
    arrivals: list[object] = [Arrival(rules.client(f"192.0.{step % 250}.{step // 250}")) for step in range(STEPS)]

    def deny(arrival: Arrival, _: object) -> tuple[Headers, bytes]:
        denied = decide(gate, arrival)
        assert isinstance(denied, Denied)
        assert denied.ticket
        return http_denial(denied)

    return deny, arrivals, arrivals


def full_denial() -> Steps:
    return denial_of(Limits(rate=RATE))


def full_denial_with_limits() -> Steps:
    per_client = ClientLimits(rate=1, burst=5, open=5)
    return denial_of(Limits(rate=RATE, max_pending=1_000, max_open=100_000, client=per_client, address=per_client))


CASES = [
    Case("keyed_gcra", keyed_step, 2),
    Case("calendar", crowd_step, 1),
    Case("newcomer_admitted", newcomer_admitted, 20),
    Case("newcomer_hinted", newcomer_hinted, 10),
    Case("early_ticket", early_ticket, 15),
    Case("due_hint_admitted", due_hint_admitted, 8),
    Case("due_hint_firm", due_hint_firm, 6),
    Case("due_firm_admitted", due_firm_admitted, 8),
    Case("spent_hint_hinted", spent_hint_hinted, 6),
    Case("denial", full_denial, 2),
    Case("denial_all_limits", full_denial_with_limits, 2),
]
"""A keyed limiter whose table is bounded, a calendar in a crowd, its paths, a denial with a ticket on the wire."""


def turns(steps: Steps) -> Iterator[Steps]:
    """The steps, a turn at a time. Tickets are copied, as those of a real arrival have just been read, too."""
    call, first, second = steps
    for start in range(0, len(first) - UNTIMED, TURN):
        turn = slice(start, start + TURN)
        yield call, first[turn], [Ticket(*shown) if isinstance(shown, Ticket) else shown for shown in second[turn]]
