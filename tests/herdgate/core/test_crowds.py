"""Crowds on the real calendar: how soon everybody is back, at what cost, and that nothing they do breaks the bound.

The bound: in any window at most `burst` plus what the rate paid in it, plus firm slots taken late (`hold_s` and one
bucket of the rate). `Book.excess` is what must stay under burst and late slots together; it covers every window.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import pytest

from herdgate.core.limits import Limits
from tests.herdgate.core.crowds import (
    Answer,
    Behaviour,
    CalendarDoor,
    ControlDoor,
    Group,
    Shown,
    drive,
    every_15_s,
    every_second,
    every_second_with_ticket,
    five_times_a_second,
    full_jitter,
    never_fetch,
    never_return,
    obey,
    obey_at_once,
    obey_hint_only,
    obey_late,
)

SEED = 1
R500 = Limits(rate=500)
CROWD = Group(obey, 10_000, 0, 0.3)
HAMMER = Group(every_second, 30_000, 0, 0.3)
DIP = ((5.0, 100.0), (15.0, 500.0))


class Line(NamedTuple):
    """A crowd and its figures. `tries` and `longest_wait_s` are those of the last group; None: nothing is claimed."""

    groups: list[Group]
    all_back_s: float
    tries: float | None
    longest_wait_s: float | None
    limits: Limits = R500
    rates: tuple[tuple[float, float], ...] = ()


LINES = {
    "10,000 obey": Line([CROWD], 19.3, 1.94, 19.0),
    "30,000 obey": Line([Group(obey, 30_000, 0, 0.3)], 59.3, 2.69, 59.0),
    "30,000 obey, hints of any length": Line(
        [Group(obey, 30_000, 0, 0.3)], 59.3, 1.98, 59.0, Limits(rate=500, hint_cap_s=600)
    ),
    "10,000 obey without tickets": Line([Group(obey_hint_only, 10_000, 0, 0.3)], 19.4, 1.94, 19.3),
    "10,000 every second": Line([Group(every_second, 10_000, 0, 0.3)], 19.3, None, None),
    "10,000 with full jitter": Line([Group(full_jitter, 10_000, 0, 0.3)], 41.8, None, None),
    "8,000 never return, then 10,000 obey": Line(
        [Group(never_return, 8_000, 0, 0.3), Group(obey, 10_000, 20, 20.3)], 39.3, 2.87, 19.0
    ),
    "6,000 hammer at a fifth of the rate, then 2,000 obey": Line(
        [Group(every_second, 6_000, 0, 0.3), Group(obey, 2_000, 20, 20.3)], 79.3, 2.87, 27.2, Limits(rate=100)
    ),  # longer than at 500 a second: the show rate is learnt from hints, and those are as many fewer
    "6,000 hammer at a fifth of the rate, 400 obey": Line(
        [Group(every_second, 6_000, 0, 0.3), Group(obey, 400, 1, 1.3)], 63.3, 1.97, 30.2, Limits(rate=100)
    ),
    "10,000 never fetch, 5,000 obey": Line(
        [Group(never_fetch, 10_000, 0, 0.3), Group(obey, 5_000, 5, 5.3)], 29.3, 1.99, 24.0
    ),
    "10,000 obey while the rate dips": Line([CROWD], 27.3, 2.86, 27.0, rates=DIP),
    "5,000 hammer five times a second, 5,000 obey": Line(
        [Group(five_times_a_second, 5_000, 0, 0.3), Group(obey, 5_000, 0, 0.3)], 22.0, 1.94, 21.7
    ),
}

MILLIONS_OF_TRIES = {
    "30,000 hammer, then 10,000 obey": Line([HAMMER, Group(obey, 10_000, 20, 20.3)], 79.3, 2.85, 22.3),
    "30,000 hammer, 2,000 obey": Line([HAMMER, Group(obey, 2_000, 1, 1.3)], 63.3, 1.97, 30.2),
}


@pytest.mark.parametrize("name", [*LINES, *(pytest.param(name, marks=pytest.mark.soak) for name in MILLIONS_OF_TRIES)])
def test_crowd_is_back_as_soon_as_the_design_says(name: str) -> None:
    groups, all_back_s, tries, longest_wait_s, limits, rates = (LINES | MILLIONS_OF_TRIES)[name]
    door = CalendarDoor(limits, SEED)
    crowd = drive(door, groups, seed=SEED, rates=rates)
    assert max(crowd.back.values()) == pytest.approx(all_back_s, rel=0.05), f"seed {SEED}"
    figures = crowd.figures(groups[-1])
    assert figures.back == groups[-1].clients
    if tries is not None:
        assert figures.tries == pytest.approx(tries, rel=0.05), f"seed {SEED}"
        assert figures.longest_wait_s == pytest.approx(longest_wait_s, rel=0.05), f"seed {SEED}"
    assert door.book.excess <= door.bound, f"seed {SEED}"


@pytest.mark.parametrize("rates", [(), DIP], ids=["steady", "dip"])
def test_whole_decision_with_signed_tickets_fares_as_the_calendar_alone(rates: tuple[tuple[float, float], ...]) -> None:
    alone, whole = CalendarDoor(R500, SEED), ControlDoor(R500, SEED)
    expected = drive(alone, [CROWD], seed=SEED, rates=rates)
    crowd = drive(whole, [CROWD], seed=SEED, rates=rates)
    assert crowd.back == expected.back, f"seed {SEED}"
    assert crowd.figures(CROWD) == expected.figures(CROWD)
    assert whole.control.admitted.total() == 10_000
    assert sum(whole.control.denied.values()) == whole.control.denied["rate"] > 9_000
    assert whole.control.permits.pending == whole.control.permits.open == 0


@pytest.mark.parametrize("seed", [11, 12])
@pytest.mark.parametrize("behaviour", [obey_at_once, obey_late, every_second_with_ticket, obey_hint_only, full_jitter])
def test_bound_holds_without_holding(behaviour: Behaviour, seed: int) -> None:
    door = CalendarDoor(R500, seed)
    crowd = drive(door, [Group(behaviour, 6_000, 0, 3)], seed=seed, max_wait_s=0)
    assert len(crowd.back) == 6_000
    assert door.book.excess <= door.bound, f"seed {seed}"


@pytest.mark.parametrize("max_wait_s", [0.0, 0.5])
@pytest.mark.parametrize(("rate", "burst"), [(500, None), (20_000, None), (0.5, None), (500, 1), (3.7, 2.5)])
def test_burst_is_never_exceeded_while_no_firm_slot_is_late(
    rate: float, burst: float | None, max_wait_s: float
) -> None:
    limits = Limits(rate=rate, burst=burst)
    door = CalendarDoor(limits, SEED)
    clients = min(20_000, int(rate * 8) + 20)
    groups = [
        Group(obey_at_once, clients, 0, 2),
        Group(every_second, clients // 4, 0, 2),
        Group(never_return, clients // 4, 0, 2),
    ]
    crowd = drive(door, groups, seed=SEED, max_wait_s=max_wait_s)
    assert crowd.figures(groups[0]).back == clients
    begun = 1  # the refill before a window may have paid for a part of the first firm slot in it
    rounding = rate * 0.002 + 1e-6  # a slot is a whole millisecond, and is shown a microsecond later
    assert door.book.excess <= door.calendar.burst + begun + rounding, f"seed {SEED}"


RATES: dict[str, tuple[tuple[float, float], ...]] = {
    "up": ((3, 2000),),
    "down": ((3, 50), (40, 500)),
    "off and on": ((2, 0), (7, 500)),
    "off, then slow": ((2, 0), (7, 5), (20, 500)),
    "to and fro": tuple((t, 700 if t % 2 else 3) for t in range(1, 30)),
    "on and off": tuple((t / 2, 0 if t % 2 else 900) for t in range(1, 61)),
}


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("behaviour", [obey, obey_late, every_second_with_ticket])
def test_bound_holds_while_the_rate_changes(name: str, behaviour: Behaviour) -> None:
    door = CalendarDoor(R500, SEED)
    crowd = drive(door, [Group(behaviour, 5_000, 0, 0.3)], seed=SEED, rates=RATES[name])
    assert len(crowd.back) == 5_000
    assert door.book.excess <= door.bound, f"seed {SEED}"


class SkewedDoor(CalendarDoor):
    """The clock of this door is not the one of the crowd."""

    def __init__(self, limits: Limits, seed: int, clock: Callable[[float], float]) -> None:
        super().__init__(limits, seed)
        self.clock = clock
        self.longest_told_s = 0.0

    def arrive(self, now: float, shown: Shown = None) -> Answer:
        told = super().arrive(self.clock(now), shown)
        self.longest_told_s = max(self.longest_told_s, told.told_s)
        return told


CLOCKS: dict[str, tuple[Callable[[float], float], float]] = {
    "11 s back": (lambda t: t - 11 if t > 5 else t, 11),
    "3 s back each 5 s": (lambda t: t - 3 * (t // 5), 3 * 8),
    "2 s ahead": (lambda t: t + 2 if t > 5 else t, 0),
    "10 minutes ahead": (lambda t: t + 600 if t > 5 else t, 0),
    "2 s ahead, then back": (lambda t: t + 2 if 5 < t < 8 else t, 2),
    "trembling": (lambda t: t + (0.7 if int(t * 10) % 2 else -0.7), 1.4),
}


@pytest.mark.parametrize("name", CLOCKS)
def test_bound_holds_when_the_clock_jumps(name: str) -> None:
    """CASES 2.16: a step back is standing still, a step ahead fills the bucket at most; waits stay bounded."""
    clock, lost_s = CLOCKS[name]
    door = SkewedDoor(R500, SEED, clock)
    crowd = drive(door, [CROWD], seed=SEED)
    assert len(crowd.back) == 10_000
    assert max(crowd.back.values()) < 19.3 + 1.6 + lost_s
    assert door.longest_told_s <= 30
    assert door.book.excess <= door.bound, f"seed {SEED}"


def test_fixed_timers_never_raise_the_admitted_rate() -> None:
    """CASES 1.1: 5,000 clients with a fixed 15 s retry, cut at the same moment, ignore every hint."""
    door = CalendarDoor(Limits(rate=100), SEED)
    crowd = drive(door, [Group(every_15_s, 5_000, 0, 0)], seed=SEED, until=300)
    assert 1_900 <= len(crowd.back) <= 2_100, "20 waves of one burst"
    assert max(Counter(int(moment) for moment in crowd.back.values()).values()) <= 100


def test_fixed_timers_out_of_step_find_at_most_the_rate() -> None:
    """CASES 1.1: the same, spread over one period, with no burst saved up between their waves."""
    door = CalendarDoor(Limits(rate=100, burst=1), SEED)
    crowd = drive(door, [Group(every_15_s, 5_000, 0, 15)], seed=SEED)
    assert len(crowd.back) == 5_000
    assert max(Counter(int(moment) for moment in crowd.back.values()).values()) <= 101


def test_crowd_that_obeys_recovers_from_a_routine_rollout() -> None:
    """CASES 1.1: with hints obeyed, all 5,000 are back within 50 s x 1.5, at the rate."""
    door = CalendarDoor(Limits(rate=100), SEED)
    crowd = drive(door, [Group(obey, 5_000, 0, 0.3)], seed=SEED)
    assert len(crowd.back) == 5_000
    assert max(crowd.back.values()) <= 50 * 1.5
    per_second = Counter(int(moment) for moment in crowd.back.values())
    assert per_second.pop(0) <= 200
    assert max(per_second.values()) <= 110, "those a network's delay late leave a few tokens to the next second"


def collect(door: CalendarDoor, now: float, clients: int) -> list[Shown]:
    """Tickets of newcomers that were refused."""
    told = [door.arrive(now) for _ in range(clients)]
    return [answer.ticket for answer in told if answer.ticket]


def show_all(door: CalendarDoor, now: float, tickets: Iterable[Shown]) -> list[Shown]:
    """Show all of them at this instant; the tickets those who are not admitted have then."""
    told = [door.arrive(now, ticket) for ticket in tickets]
    return [answer.ticket for answer in told if answer.ticket]


def test_hoarders_who_show_everything_at_one_instant_get_no_more_than_the_bound() -> None:
    door = CalendarDoor(R500, SEED)
    held = collect(door, 0.0, 10_000)
    for now in (25.0, 26.0, 31.0, 31.1, 40.0, 40.0, 44.9, 60.0):
        held = show_all(door, now, held)
    assert len(door.book.admitted) > 5_000
    assert door.book.excess <= door.bound


def test_late_firm_slots_are_what_the_bound_allows_beyond_the_burst() -> None:
    """The worst there is: slots nobody fetched have filled the bucket, and those of the last moments are still live."""
    door = CalendarDoor(R500, SEED)
    held = show_all(door, 25.0, collect(door, 0.0, 10_000))
    assert len(held) == 9_000
    show_all(door, 40.0, [None] * 1_000 + held)
    assert door.book.excess > door.calendar.burst + 0.99 * 500 * 1.5
    assert door.book.excess <= door.bound


@pytest.mark.parametrize("late_s", [0.0, 0.5, 1.498, 1.502, 1.6, 2.0, 30.0, 61.0])
def test_firm_slots_all_fetched_late_stay_within_the_bound(late_s: float) -> None:
    door = CalendarDoor(R500, SEED)
    held = show_all(door, 25.0, collect(door, 0.0, 5_000))
    assert len(held) == 4_000
    events = sorted((25.0 + (place + 1) / 500 + 0.001 + late_s, place) for place in range(4_000))
    in_time = sum(door.arrive(now, held[place]).admitted for now, place in events)
    show_all(door, 120.0, [None] * 1_000)
    assert in_time == 4_000 if late_s < 1.5 else in_time <= 4_000
    assert door.book.excess <= door.bound


def test_spent_tickets_shown_again_admit_nobody() -> None:
    door = CalendarDoor(R500, SEED)
    hints = collect(door, 0.0, 3_000)
    firm = show_all(door, 20.0, hints)
    now = 20.0
    for now in (20.0 + step / 2 for step in range(1, 10)):
        show_all(door, now, firm)
    show_all(door, now, [None] * 1_000)
    before = len(door.book.admitted)
    for ticket in (hints + firm) * 3:
        assert not door.arrive(now, ticket).admitted
    assert len(door.book.admitted) == before
    assert door.book.excess <= door.bound


def test_preflight_cannot_keep_a_firm_slot_alive() -> None:
    """Who shows a firm slot to a pre-flight gets that same slot back, so it still ends `hold_s` after its time."""
    door = CalendarDoor(R500, SEED)
    held: list[Shown] = []
    now = 0.0
    for now in (step * 0.7 for step in range(90)):
        answers = [door.reserve(now, ticket) for ticket in held]
        held = [answer.ticket for answer in answers if answer.admitted]
        while (answer := door.reserve(now)).admitted:
            held.append(answer.ticket)
    show_all(door, now + 0.1, held)
    assert len(door.book.admitted) >= 500
    assert door.book.excess <= door.bound


def test_preflights_nobody_follows_up_do_not_add_up() -> None:
    """Tokens set aside come back to the bucket when nobody fetches them; they are set aside again only within burst."""
    door = CalendarDoor(R500, SEED)
    held: list[tuple[float, Shown]] = []
    now = 0.0
    for now in (step * 0.05 for step in range(1_200)):
        while (answer := door.reserve(now)).admitted:
            held.append((now, answer.ticket))
    show_all(door, now + 0.1, [ticket for taken, ticket in held if now - taken < 1.4])
    assert len(door.book.admitted) >= 400
    assert door.book.excess <= door.bound


def test_preflights_and_slots_nobody_fetches_together_stay_within_the_bound() -> None:
    door = CalendarDoor(R500, SEED)
    firm = show_all(door, 25.0, collect(door, 0.0, 10_000))
    reserved: list[Shown] = []
    now = 25.0
    for now in (25.0 + step * 0.05 for step in range(250)):
        while (answer := door.reserve(now)).admitted:
            reserved.append(answer.ticket)
    show_all(door, now, [*firm, *reserved, *[None] * 1_000])
    assert len(door.book.admitted) > 1_000
    assert door.book.excess <= door.bound


def test_preflights_that_are_followed_up_lose_no_admission() -> None:
    door = CalendarDoor(R500, SEED)
    told = 0
    waiting: list[Shown] = []
    for step in range(200):
        now = step * 0.05
        show_all(door, now, waiting)  # each comes with its slot 50 ms after asking
        waiting = []
        while (answer := door.reserve(now)).admitted:
            waiting.append(answer.ticket)
            told += 1
    assert told == pytest.approx(500 + 500 * 9.9, abs=2), "all but what came while the whole burst was set aside"
    assert len(door.book.admitted) == pytest.approx(500 + 500 * 9.85, abs=2)
    assert door.book.excess <= door.bound


def test_admissions_given_back_are_admitted_once_again_and_no_more() -> None:
    door = CalendarDoor(R500, SEED)
    rng = random.Random(SEED)
    for step in range(4_000):
        now = step / 200
        for _ in range(10):
            if door.arrive(now).admitted and rng.random() < 0.5:
                door.calendar.give_back()
                door.book.admitted.pop()
    assert len(door.book.admitted) == pytest.approx(500 + 500 * 19.995, abs=2)
    assert door.book.excess <= door.calendar.burst + 1e-6
    assert door.calendar.tokens < 2


def test_giving_back_never_fills_beyond_the_burst() -> None:
    door = CalendarDoor(R500, SEED)
    for _ in range(10):
        door.calendar.give_back()
    assert sum(door.arrive(0.0).admitted for _ in range(1_000)) == 500


def test_tickets_of_a_second_calendar_are_worth_a_hint_each() -> None:
    """Two processes with the same secrets and no common calendar: whoever changes sides costs nobody a promise."""
    doors = CalendarDoor(R500, SEED), CalendarDoor(R500, SEED + 1)
    held = [show_all(door, 12.0, collect(door, 0.0, 5_000)) for door in doors]
    for now in (13.0 + step / 10 for step in range(300)):
        held = [show_all(door, now, other) for door, other in zip(doors, reversed(held), strict=True)]
    for door in doors:
        assert door.book.excess <= door.bound
    assert sum(len(door.book.admitted) for door in doors) == 10_000


@pytest.mark.parametrize("seed", range(20, 26))
def test_bound_holds_for_a_random_mob(seed: int) -> None:
    """Everything at once: pre-flights, tickets shown at any time and again, rates and clocks that jump."""
    rng = random.Random(seed)
    limits = Limits(rate=rng.choice([0.5, 5, 40]), burst=rng.choice([None, 1, 30]), hint_cap_s=5, horizon_s=20)
    door = CalendarDoor(limits, seed)
    rate, now, pool = limits.rate or 0.0, 0.0, collect(door, 0.0, 200)
    for _ in range(3_000):
        now += rng.choice([0, 0, 0.01, 0.1, 0.5, 1.5, rng.expovariate(0.5), -1.0])
        match rng.randrange(8):
            case 0:
                door.set_rate(rate * rng.choice([0, 0.1, 1, 1, 1, 3]), now)
            case 1:
                answers = [door.reserve(now, rng.choice([None, *pool])) for _ in range(rng.randrange(30))]
                pool += [answer.ticket for answer in answers if answer.ticket]
            case 2:
                pool += collect(door, now, rng.randrange(100))
            case _:
                pool += show_all(door, now, rng.choices(pool, k=20)) if pool else []
        pool = pool[-300:]
    assert door.book.admitted
    assert door.book.excess <= door.bound, f"seed {seed}"
