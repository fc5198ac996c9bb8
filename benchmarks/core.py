"""What a decision costs, in steps of the plainest keyed rate limiter. Fails if a bound is missed.

How it is measured. Every case has processes of its own, and in each the case and the plain step take turns of a
thousand steps, so that whatever else the machine does meets both. A value is the ratio of their CPU times; pyperf runs
the processes, in rounds over all cases, and the table shows medians over all rounds.

What is measured. The crowd is a replay: 10,000 clients reconnect in one second before a rate of 500, most of them obey,
some do not, and every arrival until the last of them is in is recorded with the ticket it shows. Below it, the paths:
arrivals of one kind each. A full denial goes from the arrival of a newcomer to the bytes of its refusal.
"""

import contextlib
import heapq
import io
import random
import statistics
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

import pyperf  # type: ignore[import-untyped]

from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.calendar import Calendar
from herdgate.core.clients import AddressRules
from herdgate.core.gcra import KeyedGcra
from herdgate.core.grant import Grant
from herdgate.core.limits import ClientLimits, Limits
from herdgate.core.tickets import Ticket
from herdgate.denial import Headers, http_denial
from herdgate.gate import Gate

RATE = 500
CLIENTS = 10_000
KEYS = 1_000
KEYED_STEPS = 20_000
STEPS = 1_900  # of one path
TICK_S = 1e-7  # between arrivals of one path: time passes, but all of them together earn no token
ORIGIN_MS = 1_700_000_000_000
CALENDAR_BOUND, DENIAL_BOUND = 8.0, 60.0
ROUNDS, FAST_ROUNDS = 8, 3
TURN, UNTIMED = 1_000, 200  # steps of one turn, and how many of them are not timed

Steps = tuple[Callable[..., object], list[object], list[object]]
"""A call and what it is called with, step by step."""


class Case(NamedTuple):
    """One line of the table. `prepare` makes fresh state, untimed; `loops` makes a value take some 30 ms."""

    name: str
    prepare: Callable[[], Steps]
    loops: int
    bound: float | None = None


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


def describe_crowd() -> str:
    """The mix of the replay, and proof that a fresh calendar answers it as it was recorded."""
    arrive, times, tickets = crowd_step()
    mix: Counter[str] = Counter()
    for now, shown in zip(times, tickets, strict=True):
        grant = arrive(now, shown)
        assert isinstance(grant, Grant)
        if grant.admitted:
            mix["admitted"] += 1
        elif grant.ticket is shown:
            mix["told again" if shown else "told no time"] += 1
        else:
            mix["given a firm slot" if grant.ticket and grant.ticket.kind == "firm" else "given a hint"] += 1
    assert mix["admitted"] == CLIENTS, "the replay is not what was recorded"
    shares = ", ".join(f"{kind} {count / len(times):.0%}" for kind, count in mix.most_common())
    return f"The crowd: {len(times):,} arrivals of {CLIENTS:,} clients; {shares}."


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
    Case("KeyedGcra, bounded table", keyed_step, 2),
    Case("calendar, in a crowd", crowd_step, 1, CALENDAR_BOUND),
    Case("  newcomer: admitted", newcomer_admitted, 20),
    Case("  newcomer: a hint", newcomer_hinted, 10),
    Case("  early ticket: told again", early_ticket, 15),
    Case("  due hint: admitted", due_hint_admitted, 8),
    Case("  due hint: a firm slot", due_hint_firm, 6),
    Case("  due firm slot: admitted", due_firm_admitted, 8),
    Case("  spent hint: a hint", spent_hint_hinted, 6),
    Case("denial with ticket, on the wire", full_denial, 2, DENIAL_BOUND),
    Case("  the same, all client limits on", full_denial_with_limits, 2),
]


def turns(steps: Steps) -> Iterator[Steps]:
    """The steps, a turn at a time. Tickets are copied, as those of a real arrival have just been read, too."""
    call, first, second = steps
    for start in range(0, len(first) - UNTIMED, TURN):
        turn = slice(start, start + TURN)
        yield call, first[turn], [Ticket(*shown) if isinstance(shown, Ticket) else shown for shown in second[turn]]


def plain_turns() -> Iterator[Steps]:
    while True:
        yield from turns(plain_step())


def time_turn(turn: Steps) -> float:
    """CPU seconds of an average step. `map` and `deque` call without a line of Python between two steps.

    The first steps bring back to the processor's caches what the turn of the other evicted; they are not timed.
    """
    call, first, second = turn
    steps = map(call, first, second)
    deque(islice(steps, UNTIMED), maxlen=0)
    began = time.process_time()
    deque(steps, maxlen=0)
    return (time.process_time() - began) / (len(first) - UNTIMED)


def time_plain(loops: int) -> float:
    """CPU seconds of `loops` plain steps."""
    return statistics.mean(time_turn(turn) for turn, _ in zip(plain_turns(), range(100), strict=False)) * loops


def time_in_plain_steps(loops: int, prepare: Callable[[], Steps]) -> float:
    """`loops` average steps, in plain steps."""
    plain = plain_turns()
    taken = plain_taken = 0.0
    for _ in range(loops):
        for turn in turns(prepare()):
            taken += time_turn(turn)
            time_turn(next(plain))  # so that the plain step is as fast beside the case as it is alone
            plain_taken += time_turn(next(plain))
    return taken / plain_taken * loops


def measure(runner: pyperf.Runner, rounds: int) -> tuple[list[float], dict[str, list[float]]]:
    """CPU seconds of a plain step, and every case in plain steps: some values a round."""
    plain: list[float] = []
    values: dict[str, list[float]] = {case.name: [] for case in CASES}
    for number in range(rounds):
        plain += run(runner, f"plain #{number}", 1, time_plain)
        for case in CASES:
            values[case.name] += run(runner, f"{case.name} #{number}", case.loops, time_in_plain_steps, case.prepare)
    return plain, values


def run(runner: pyperf.Runner, name: str, loops: int, *call: object) -> tuple[float, ...]:
    """The values of one benchmark; none in a process that measures another one."""
    runner.args.loops = loops
    with contextlib.redirect_stdout(io.StringIO()):  # some lines each; the table says it all
        benchmark = runner.bench_time_func(name, *call)
    return benchmark.get_values() if benchmark is not None else ()


def report(plain: list[float], values: dict[str, list[float]]) -> list[str]:
    """Print the table; the bounds that are missed."""
    missed = []
    plain_us = statistics.median(plain) * 1e6
    print(f"{'median of one step':34}{'us':>8}{'x plain':>9}{'bound':>7}   middle half, x plain")
    print(f"{'plain keyed GCRA, one dict':34}{plain_us:8.3f}{1:9.2f}")
    for case in CASES:
        low, median, high = statistics.quantiles(values[case.name], n=4)
        bound = f"{case.bound:g}" if case.bound else ""
        print(f"{case.name:34}{median * plain_us:8.3f}{median:9.2f}{bound:>7}   {low:.2f} to {high:.2f}")
        if case.bound and median > case.bound:
            missed.append(f"{case.name}: {median:.1f} plain steps, more than {case.bound:g}")
    return missed


def main() -> None:
    """Run the cases, print the table, fail if a bound is missed."""
    runner = pyperf.Runner(values=3, warmups=1, processes=1)
    args = runner.parse_args()
    args.processes = 1  # rounds take their place
    plain, values = measure(runner, FAST_ROUNDS if args.fast or args.debug_single_value else ROUNDS)
    if args.worker:
        return
    print(describe_crowd())
    missed = report(plain, values)
    if missed:
        sys.exit("\n".join(["bounds missed:", *missed]))


if __name__ == "__main__":
    main()
