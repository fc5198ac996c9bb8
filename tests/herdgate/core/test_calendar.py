"""The calendar, promise by promise."""

import random
import sys
from math import ceil

import pytest

from herdgate.core import calendar as calendar_module
from herdgate.core.calendar import Calendar
from herdgate.core.classes import NORMAL
from herdgate.core.grant import Grant
from herdgate.core.limits import Limits
from herdgate.core.spent import SpentTickets
from herdgate.core.tickets import LATEST_MS, Ticket
from herdgate.core.unlimited import Unlimited

SEED = 1
ORIGIN_MS = 1_700_000_000_000
IN_TIME = 1e-6
LIMITS = Limits(rate=10, burst=5)


def start(limits: Limits = LIMITS, *, seed: int = SEED, now: float = 0.0) -> Calendar:
    return Calendar(limits, random.Random(seed).random, now, ORIGIN_MS)


def empty(calendar: Calendar, now: float = 0.0) -> None:
    """Take every token there is, as newcomers do."""
    calendar.advance(now)
    while calendar.tokens >= 1:
        assert calendar.arrive(now).admitted


def at(ticket: Ticket | None) -> float:
    assert ticket is not None
    return (ticket.at_ms - ORIGIN_MS) / 1000


def hint_ticket(calendar: Calendar, now: float = 0.0) -> Ticket:
    grant = calendar.arrive(now)
    assert not grant.admitted
    assert grant.ticket is not None
    assert grant.ticket.kind == "hint"
    return grant.ticket


def firm_ticket(calendar: Calendar, hint: Ticket) -> Ticket:
    """Show a hint at its time to a calendar without tokens."""
    grant = calendar.arrive(at(hint), hint)
    assert not grant.admitted
    assert grant.ticket is not None
    assert grant.ticket.kind == "firm"
    return grant.ticket


def promised(limits: Limits = LIMITS) -> tuple[Calendar, Ticket]:
    """A calendar without tokens, at 0.1 s, and the firm slot of the first one refused, at 0.2 s."""
    calendar = start(limits)
    empty(calendar)
    hint = hint_ticket(calendar)
    empty(calendar, at(hint))
    return calendar, firm_ticket(calendar, hint)


def test_burst_is_admitted_at_once_and_then_the_rate() -> None:
    calendar = start()
    assert sum(calendar.arrive(0.0).admitted for _ in range(20)) == 5
    assert sum(calendar.arrive(step / 100).admitted for step in range(1, 1001)) in (99, 100)


@pytest.mark.parametrize(
    ("rate", "burst", "expected"), [(10, None, 10), (0.2, None, 1), (10, 1, 1), (10, 2.5, 2.5), (3.5, None, 3.5)]
)
def test_burst_is_one_second_of_the_rate_and_at_least_one(rate: float, burst: float | None, expected: float) -> None:
    calendar = start(Limits(rate=rate, burst=burst))
    assert calendar.burst == calendar.tokens == expected
    calendar.advance(1e6)
    assert calendar.tokens == expected


def test_hints_are_one_place_in_the_refill_each() -> None:
    calendar = start()
    empty(calendar)
    grants = [calendar.arrive(0.0) for _ in range(50)]
    assert [round(at(grant.ticket), 3) for grant in grants] == [round((place + 1) / 10, 3) for place in range(50)]
    assert [grant.told_s for grant in grants] == [at(grant.ticket) for grant in grants]
    assert calendar.hints == 50
    assert not any(grant.admitted or grant.spent for grant in grants)


def test_hint_comes_after_all_firm_slots() -> None:
    calendar, firm = promised()
    assert calendar.firm == pytest.approx(0.2)
    assert at(hint_ticket(calendar, 0.1)) == pytest.approx(0.1 + 0.1 + 0.1, abs=0.0011)
    assert at(hint_ticket(calendar, 0.15)) == pytest.approx(0.15 + 0.05 + 0.2, abs=0.0011)
    assert at(firm) == pytest.approx(0.2)


def test_ticket_before_its_time_is_told_again_and_changes_nothing() -> None:
    calendar = start()
    empty(calendar)
    first = calendar.arrive(0.0)
    before = (calendar.tokens, calendar.hints, calendar.firm)
    again = calendar.arrive(0.0, first.ticket)
    assert again == first
    assert (calendar.tokens, calendar.hints, calendar.firm) == before
    calendar.arrive(0.0, hint_ticket(calendar))
    calendar.give_back()
    later = calendar.arrive(0.05, first.ticket)
    assert later.ticket == first.ticket, "even with a token in the bucket"
    assert later.told_s == pytest.approx(0.05)


def test_hint_at_its_time_takes_a_token() -> None:
    calendar = start()
    empty(calendar)
    hint = hint_ticket(calendar)
    assert calendar.arrive(at(hint), hint) == Grant(True)
    assert calendar.hints == 0
    assert calendar.tokens < 1


def test_hint_at_its_time_without_a_token_becomes_a_firm_slot() -> None:
    calendar = start()
    empty(calendar)
    hints = [hint_ticket(calendar) for _ in range(3)]
    empty(calendar, 0.3)
    slots = [calendar.arrive(0.3, hint) for hint in hints]
    assert [grant.admitted for grant in slots] == [False] * 3
    assert [grant.ticket.kind for grant in slots if grant.ticket] == ["firm"] * 3
    assert [at(grant.ticket) for grant in slots] == pytest.approx([0.4, 0.5, 0.6], abs=0.0011)
    assert [grant.told_s for grant in slots] == pytest.approx([0.1, 0.2, 0.3], abs=0.0011)
    assert calendar.firm == pytest.approx(0.6)
    assert calendar.hints == 0


def test_slot_is_never_before_its_refill() -> None:
    calendar = start(Limits(rate=3000, burst=1))
    empty(calendar)
    hints = [hint_ticket(calendar) for _ in range(10)]
    empty(calendar, 0.0101)
    for hint in hints:
        ticket = calendar.arrive(0.0101, hint).ticket
        assert 0 <= at(ticket) - calendar.firm < 0.001
    assert calendar.firm == pytest.approx(0.0101 + 10 / 3000)


@pytest.mark.parametrize("late_s", [0.0, 0.7, 1.5])
def test_firm_slot_in_time_is_admitted_whatever_else_came(late_s: float) -> None:
    calendar, firm = promised()
    now = at(firm) + late_s
    empty(calendar, now)
    for _ in range(100):
        calendar.arrive(now)
    assert calendar.arrive(now, firm) == Grant(True)


@pytest.mark.parametrize("late_s", [1.502, 10.0, 60.0])
def test_firm_slot_after_its_hold_counts_as_a_hint(late_s: float) -> None:
    calendar, firm = promised()
    now = at(firm) + late_s
    empty(calendar, now)
    grant = calendar.arrive(now, firm)
    assert not grant.admitted
    assert not grant.spent
    assert grant.ticket is not None
    assert grant.ticket.kind == "firm"
    assert at(grant.ticket) == pytest.approx(now + 0.1, abs=0.0011)


def test_ticket_after_its_grace_is_worth_nothing() -> None:
    calendar, firm = promised()
    now = at(firm) + 60.002
    empty(calendar, now)
    grant = calendar.arrive(now, firm)
    assert grant.spent
    assert grant.ticket is not None
    assert grant.ticket.kind == "hint"


def test_ticket_is_redeemed_once() -> None:
    calendar, firm = promised()
    assert calendar.arrive(at(firm), firm).admitted
    again = calendar.arrive(at(firm), firm)
    assert again.spent
    assert not again.admitted
    calendar.give_back()
    assert calendar.arrive(at(firm), firm) == Grant(True, spent=True), "as a newcomer, for a token"


def test_refill_before_firm_belongs_to_the_slots() -> None:
    calendar = start()
    empty(calendar)
    hints = [hint_ticket(calendar) for _ in range(10)]
    empty(calendar, 1.0)
    for hint in hints:
        calendar.arrive(1.0, hint)
    left = calendar.tokens
    calendar.advance(1.999)
    assert calendar.tokens == left
    calendar.advance(2.3)
    assert calendar.tokens == pytest.approx(left + 3, abs=0.02)


def test_token_in_the_bucket_may_be_taken_whatever_was_promised() -> None:
    calendar, _ = promised()
    calendar.give_back()
    assert calendar.firm > calendar.v
    assert calendar.arrive(0.1).admitted


def test_slot_nobody_fetched_comes_back_to_the_bucket_after_its_bucket_and_hold() -> None:
    calendar = start(Limits(rate=0.1, burst=5))
    empty(calendar)
    first, second = hint_ticket(calendar), hint_ticket(calendar)  # at 10 and 20 s
    empty(calendar, 20.0)
    assert [calendar.arrive(20.0, hint).ticket is not None for hint in (first, second)] == [True, True]  # 30 and 40 s
    for now in (30.0, 31.0, 31.5, 31.59):
        calendar.advance(now)
        assert calendar.tokens == pytest.approx(0.0)
    calendar.advance(31.61)
    assert calendar.tokens == pytest.approx(1.0)
    calendar.advance(40.0)
    assert calendar.tokens == pytest.approx(1.0)
    calendar.advance(50.0)
    assert calendar.tokens == pytest.approx(3.0), "the other one, and one refilled"


def test_slots_nobody_fetched_fill_the_bucket_at_most() -> None:
    calendar = start()
    empty(calendar)
    hints = [hint_ticket(calendar) for _ in range(50)]
    empty(calendar, 5.0)
    for hint in hints:
        calendar.arrive(5.0, hint)
    for step in range(80):
        calendar.advance(5.0 + step / 10)
        assert 0 <= calendar.tokens <= 5
    assert calendar.tokens == 5


def test_fetched_slot_does_not_come_back() -> None:
    calendar, firm = promised(Limits(rate=10, burst=1))
    assert calendar.arrive(at(firm), firm).admitted
    hint = hint_ticket(calendar, 0.25)
    empty(calendar, 10.0)
    calendar.arrive(10.0, hint)
    assert calendar.tokens == pytest.approx(0)


def test_hints_nobody_keeps_shorten_the_next_ones() -> None:
    calendar = start()
    empty(calendar)
    for _ in range(200):
        calendar.arrive(0.0)
    assert calendar.hints == 200
    calendar.advance(40.0)
    assert calendar.hints == 0
    assert calendar.classes[0].show_rate == pytest.approx((1 - 1 / 200) ** 200, rel=0.01)
    empty(calendar, 40.0)
    assert at(hint_ticket(calendar, 40.0)) == pytest.approx(40 + calendar.classes[0].show_rate / 10, abs=0.0011)


def test_hints_that_are_kept_leave_the_show_rate_alone() -> None:
    calendar = start()
    empty(calendar)
    for hint in [hint_ticket(calendar) for _ in range(50)]:
        assert calendar.arrive(at(hint) + IN_TIME, hint).admitted
    calendar.advance(10.0)
    assert calendar.classes[0].show_rate == 1
    assert calendar.hints == 0


def test_show_rate_recovers_once_hints_are_kept() -> None:
    calendar = start()
    calendar.classes[0].show_rate = 0.1
    empty(calendar)
    hints = [hint_ticket(calendar) for _ in range(200)]
    for hint in hints:
        calendar.arrive(at(hint) + IN_TIME, hint)
    calendar.advance(20.0)
    assert calendar.classes[0].show_rate == pytest.approx(1 - 0.9 * (1 - 1 / 200) ** 200, rel=0.01)


def test_half_of_the_hints_kept_means_half_a_place_each() -> None:
    calendar = start()
    empty(calendar)
    now = 0.0
    for _ in range(400):
        hints = [hint_ticket(calendar, now) for _ in range(4)]
        for hint in hints[:2]:
            calendar.arrive(now + 1.0, hint)
        now += 4.0
        empty(calendar, now)
    assert calendar.classes[0].show_rate == pytest.approx(0.5, abs=0.05)


def test_least_show_rate_bounds_how_near_a_hint_is() -> None:
    calendar = start()
    calendar.classes[0].show_rate = 0.0
    empty(calendar)
    leads = [at(hint_ticket(calendar)) for _ in range(100)]
    assert leads == pytest.approx([ceil(place + 1) / 1000 for place in range(100)], abs=0.0011)


def test_hint_kept_after_its_hold_was_counted_as_not_kept() -> None:
    calendar = start()
    empty(calendar)
    hint = hint_ticket(calendar)
    calendar.advance(at(hint) + 1.7)
    assert calendar.hints == 0
    show_rate = calendar.classes[0].show_rate
    assert show_rate < 1
    empty(calendar, 2.0)
    assert calendar.arrive(2.0, hint).ticket
    calendar.advance(20.0)
    assert calendar.classes[0].show_rate == show_rate


def test_beyond_the_cap_hints_are_drawn_from_its_upper_half() -> None:
    calendar = start()
    empty(calendar)
    for _ in range(300):
        hint_ticket(calendar)
    drawn = [at(hint_ticket(calendar)) for _ in range(500)]
    assert 15 <= min(drawn) < 15.2, f"seed {SEED}"
    assert 29.8 < max(drawn) <= 30.001, f"seed {SEED}"
    assert sum(drawn) / 500 == pytest.approx(22.5, abs=0.5), f"seed {SEED}"


def test_beyond_the_horizon_nothing_is_promised() -> None:
    calendar = start()
    empty(calendar)
    for _ in range(6_000):
        hint_ticket(calendar)
    told = [calendar.arrive(0.0) for _ in range(500)]
    assert {(grant.admitted, grant.ticket) for grant in told} == {(False, None)}
    assert 600 <= min(grant.told_s for grant in told) < 605, f"seed {SEED}"
    assert 1195 < max(grant.told_s for grant in told) <= 1200, f"seed {SEED}"
    assert calendar.hints == 6_000


def test_firm_slots_end_at_the_horizon() -> None:
    calendar = start(Limits(rate=10, burst=1, hint_cap_s=2, horizon_s=2))
    empty(calendar)
    hints = [hint_ticket(calendar) for _ in range(20)]
    empty(calendar, 2.0)
    assert {firm.kind for hint in hints if (firm := calendar.arrive(2.0, hint).ticket)} == {"firm"}
    assert calendar.firm == pytest.approx(4.0)
    calendar.firm = 4.0
    grant = calendar.arrive(2.0, Ticket("hint", ORIGIN_MS + 2_000, 7, 0))
    assert grant.ticket is None
    assert 2 <= grant.told_s <= 4
    assert not grant.spent
    assert calendar.firm == 4.0


def test_ticket_for_a_time_nobody_can_have_promised_is_worth_nothing() -> None:
    calendar = start()
    empty(calendar)
    nearest = Ticket("hint", ORIGIN_MS + 601_000, 7, 0)
    assert calendar.arrive(0.0, nearest) == Grant(False, nearest, 601.0)
    beyond = calendar.arrive(0.0, Ticket("firm", ORIGIN_MS + 601_001, 7, 0))
    assert beyond.spent
    assert beyond.ticket is not None
    assert beyond.ticket.kind == "hint"


def test_firm_slot_of_another_calendar_counts_as_a_hint() -> None:
    calendar, firm = promised()
    foreign = firm._replace(issuer=firm.issuer ^ 1)
    early = calendar.arrive(0.1, foreign)
    assert early.ticket == foreign
    empty(calendar, at(foreign))
    grant = calendar.arrive(at(foreign), foreign)
    assert not grant.admitted
    assert not grant.spent
    assert grant.ticket is not None
    assert grant.ticket.kind == "firm"
    assert grant.ticket.issuer == calendar.issuer
    assert calendar.arrive(at(foreign), foreign).spent, "once here, like every ticket"
    assert calendar.arrive(at(firm), firm).admitted, "and it costs nobody a promise"


def test_foreign_ticket_takes_a_token_if_there_is_one() -> None:
    calendar = start()
    foreign = Ticket("firm", ORIGIN_MS + 1_000, 7, 0)
    assert calendar.arrive(1.0, foreign) == Grant(True)
    assert calendar.tokens == 4


def test_foreign_hint_is_not_counted_among_our_own() -> None:
    calendar = start()
    empty(calendar)
    hint_ticket(calendar)
    calendar.arrive(0.5, Ticket("hint", ORIGIN_MS + 100, 7, 0))
    assert calendar.hints == 1


def test_issuers_of_two_calendars_differ_and_fit_in_32_bits() -> None:
    issuers = {start(seed=seed).issuer for seed in range(100)}
    assert len(issuers) == 100
    assert max(issuers) > 1 << 31
    assert max(issuers) < 1 << 32


def test_lower_rate_stretches_promises_and_never_tells_long() -> None:
    calendar, firm = promised()
    hint = hint_ticket(calendar, 0.1)
    calendar.set_rate(0.1, 0.1)
    told = [calendar.arrive(0.1, firm) for _ in range(50)]
    assert {grant.ticket for grant in told} == {firm}
    assert all(5 <= grant.told_s <= 10 for grant in told), "10 s of waiting, but the rate may rise again"
    assert len({grant.told_s for grant in told}) == 50, "not all at the same moment"
    far = [calendar.arrive(0.1, hint).told_s for _ in range(50)]
    assert all(5 <= told_s <= 10 for told_s in far), f"seed {SEED}"
    assert min(far) < 5.5, f"seed {SEED}"
    assert max(far) > 9.5, f"seed {SEED}"
    assert calendar.arrive(10.0, firm).ticket == firm
    assert calendar.arrive(10.2, firm).admitted


def test_lower_rate_tells_short_waits_as_they_are() -> None:
    calendar, firm = promised()
    calendar.set_rate(5, 0.1)
    assert calendar.arrive(0.1, firm).told_s == pytest.approx(0.2)


def test_higher_rate_shortens_promises_and_refills_faster() -> None:
    calendar, firm = promised()
    hint = hint_ticket(calendar, 0.1)
    calendar.set_rate(100, 0.1)
    assert calendar.arrive(0.1, firm).told_s == pytest.approx(0.01)
    assert calendar.arrive(0.1, hint).told_s == pytest.approx(0.02, abs=0.00011)
    assert calendar.arrive(0.111, firm).admitted
    assert sum(calendar.arrive(0.12 + step / 1000).admitted for step in range(1000)) in (99, 100)
    assert calendar.burst == 5, "the burst stays what it was"


def test_default_burst_is_one_second_of_whatever_the_rate_is() -> None:
    calendar = start(Limits(rate=10))
    calendar.set_rate(3, 0.0)
    assert (calendar.burst, calendar.tokens) == (3, 3), "what a lower rate does not allow at once is gone"
    calendar.set_rate(0, 1.0)
    assert calendar.burst == 3
    calendar.set_rate(40, 1.0)
    assert (calendar.burst, calendar.tokens) == (40, 3)
    calendar.advance(2.0)
    assert calendar.tokens == 40


def test_lower_burst_than_what_is_reserved_leaves_no_room_until_it_is_fetched() -> None:
    calendar = start(Limits(rate=10))
    slots = [calendar.reserve(0.0).ticket for _ in range(8)]
    calendar.set_rate(2, 0.0)
    assert calendar.tokens == 0
    assert all(calendar.arrive(0.5, slot).admitted for slot in slots)
    calendar.advance(5.0)
    assert calendar.tokens == 2


def test_raised_rate_leaves_a_firm_slot_its_hold_in_seconds() -> None:
    calendar, firm = promised()
    calendar.set_rate(1000, at(firm))
    assert calendar.arrive(at(firm) + 1.4, firm).admitted


def test_raised_rate_leaves_a_ticket_its_grace_in_seconds() -> None:
    calendar, firm = promised()
    calendar.set_rate(1000, at(firm))
    assert calendar.is_due(firm, at(firm) + 59)
    assert not calendar.is_due(firm, at(firm) + 61)


def test_raised_rate_still_tells_long_hints_in_seconds() -> None:
    calendar = start(Limits(rate=1, burst=1))
    calendar.set_rate(100, 0.0)
    empty(calendar)
    told = [calendar.arrive(0.0).told_s for _ in range(10_000)]
    assert 15 <= min(told[5_000:]) <= max(told) <= 30.001


def test_firm_slot_that_was_given_back_is_not_good_again_when_the_hold_grows() -> None:
    calendar, firm = promised()
    calendar.advance(at(firm) + 2.0)
    empty(calendar, at(firm) + 2.0)
    calendar.set_rate(1000, at(firm) + 2.0)
    assert not calendar.arrive(at(firm) + 2.0, firm).admitted


def test_admission_that_could_not_be_used_stays_spent_and_gets_a_firm_slot() -> None:
    calendar = start()
    empty(calendar)
    grant = calendar.defer(0.0)
    assert grant.ticket is not None
    assert (grant.admitted, grant.ticket.kind, calendar.tokens) == (False, "firm", 0)
    empty(calendar, at(grant.ticket))
    assert calendar.arrive(at(grant.ticket), grant.ticket).admitted


def test_deferred_admission_without_any_rate_ever_is_told_a_while() -> None:
    grant = start(Limits(rate=0)).defer(0.0)
    assert grant.ticket is None
    assert 5 <= grant.told_s <= 10


def test_used_ticket_stays_used_when_the_grace_grows_again() -> None:
    calendar, firm = promised()
    calendar.set_rate(100, at(firm))
    assert calendar.arrive(at(firm), firm).admitted
    later = at(firm) + 30.0  # 300 s of V: beyond the grace of the first rate, and its minute is forgotten
    calendar.set_rate(10, later)
    calendar.advance(later + 0.2)
    calendar.set_rate(100, later + 0.2)
    assert not calendar.is_due(firm, later + 0.2)
    assert calendar.arrive(later + 0.2, firm).spent


def test_reserve_does_not_keep_a_firm_slot_that_was_given_back() -> None:
    calendar, firm = promised()
    calendar.advance(at(firm) + 2.0)
    empty(calendar, at(firm) + 2.0)
    calendar.set_rate(1000, at(firm) + 2.0)
    assert not calendar.reserve(at(firm) + 2.0, firm).admitted


def test_moment_later_than_a_ticket_can_carry_is_not_promised() -> None:
    calendar = Calendar(LIMITS, random.Random(SEED).random, 0.0, LATEST_MS - 100)
    empty(calendar)
    tickets = [calendar.arrive(0.0).ticket for _ in range(2)]
    assert tickets[0] is not None
    assert tickets[1] is None


def test_due_ticket_is_no_free_pass_while_the_rate_is_zero() -> None:
    calendar, firm = promised()
    calendar.set_rate(0, at(firm))
    assert not calendar.is_due(firm, at(firm))


def test_promises_of_before_are_foreign_to_a_calendar_that_became_another() -> None:
    calendar, firm = promised()
    calendar.renew_issuer()
    empty(calendar, at(firm))
    assert not calendar.arrive(at(firm), firm).admitted


def test_rate_of_the_start_is_told_exactly() -> None:
    calendar, firm = promised()
    calendar.set_rate(1, 0.1)
    calendar.set_rate(10, 0.1)
    assert calendar.arrive(0.1, firm).told_s == pytest.approx(0.1)


def test_rate_of_zero_pauses_everything_and_keeps_every_promise() -> None:
    calendar, firm = promised()
    calendar.give_back()
    calendar.set_rate(0, at(firm))
    for now in (at(firm), 5.0, 500.0):
        grant = calendar.arrive(now, firm)
        assert grant.ticket == firm
        assert not grant.admitted
        assert 5 <= grant.told_s <= 10
        newcomer = calendar.arrive(now)
        assert not newcomer.admitted, "in spite of the token"
        assert 5 <= newcomer.told_s <= 10
        assert not calendar.reserve(now, firm).admitted
        assert not calendar.reserve(now).admitted
    assert calendar.v == pytest.approx(at(firm))
    calendar.set_rate(10, 500.0)
    assert calendar.arrive(500.1, firm).admitted
    assert calendar.arrive(500.1).admitted


def test_first_rate_of_zero_admits_nobody_until_it_is_raised() -> None:
    calendar = start(Limits(rate=0))
    told = [calendar.arrive(float(now)) for now in range(50)]
    assert {(grant.admitted, grant.ticket) for grant in told} == {(False, None)}
    assert all(5 <= grant.told_s <= 10 for grant in told)
    assert len({grant.told_s for grant in told}) == 50
    assert calendar.hint(50.0, least_s=12.0).told_s == 12.0
    assert 5 <= calendar.hint(50.0, least_s=1.0).told_s <= 10
    foreign = Ticket("hint", ORIGIN_MS + 1_000, 7, 0)
    assert calendar.arrive(50.0, foreign).ticket == foreign
    calendar.set_rate(0, 60.0)
    calendar.set_rate(20, 100.0)
    assert (calendar.burst, calendar.tokens) == (20, 0), "nothing was refilled while there was no rate"
    assert sum(calendar.arrive(100 + step / 100).admitted for step in range(101)) in (19, 20)


def test_first_rate_of_zero_keeps_the_burst_that_was_set() -> None:
    calendar = start(Limits(rate=0, burst=3))
    calendar.set_rate(20, 0.0)
    calendar.advance(100.0)
    assert calendar.tokens == 3


def test_clock_that_goes_back_stands_still() -> None:
    """CASES 2.16: no negative tokens, no second refill, waits no longer than before."""
    calendar, firm = promised()
    tokens, v = calendar.tokens, calendar.v
    for now in (-3_600.0, -11.0, 0.0):
        calendar.advance(now)
        assert (calendar.tokens, calendar.v) == (tokens, v)
        assert calendar.arrive(now, firm).told_s == pytest.approx(0.1)
        assert calendar.arrive(now).told_s <= 30
    calendar.set_rate(0, 0.1)
    calendar.advance(-5.0)
    calendar.set_rate(10, -5.0)
    calendar.advance(0.15)
    assert calendar.v == pytest.approx(v + 0.05)


def test_clock_that_jumps_ahead_fills_the_bucket_and_no_more() -> None:
    """CASES 2.16: an hour ahead is one burst."""
    calendar = start()
    empty(calendar)
    assert sum(calendar.arrive(3_600.0).admitted for _ in range(100)) == 5


def test_time_need_not_begin_at_zero() -> None:
    calendar = start(now=1e6)
    assert sum(calendar.arrive(1e6).admitted for _ in range(100)) == 5
    assert at(hint_ticket(calendar, 1e6)) == pytest.approx(0.1 * 96)


def test_many_small_steps_are_one_large_step() -> None:
    small, large = start(), start()
    empty(small)
    empty(large)
    for step in range(1, 401):
        small.advance(step / 1000)
    large.advance(0.4)
    assert small.tokens == pytest.approx(large.tokens)
    assert small.v == pytest.approx(large.v)


def test_reserve_sets_a_token_aside_for_this_very_moment() -> None:
    calendar = start()
    now = 1.00025
    grant = calendar.reserve(now)
    assert grant.admitted
    assert grant.ticket is not None
    assert grant.ticket.kind == "firm"
    assert grant.told_s == 0
    assert calendar.tokens == 4
    empty(calendar, now)
    assert calendar.arrive(now, grant.ticket).admitted, "at once, in the same millisecond"
    assert calendar.arrive(now, grant.ticket).spent


def test_reserve_tells_what_arrive_would_tell() -> None:
    first, second = start(), start()
    empty(first)
    empty(second)
    assert first.reserve(0.0) == second.arrive(0.0)


def test_reserve_takes_a_hint_that_is_due() -> None:
    calendar = start()
    empty(calendar)
    hint = hint_ticket(calendar)
    grant = calendar.reserve(at(hint), hint)
    assert grant.admitted
    assert grant.ticket is not None
    assert grant.ticket.kind == "firm"
    calendar.give_back()
    assert calendar.reserve(at(hint), hint).spent


def test_reserved_slot_that_is_due_stays_what_it_is() -> None:
    calendar = start()
    ticket = calendar.reserve(0.0).ticket
    empty(calendar)
    for now in (0.0, 0.9, 1.4):
        empty(calendar, now)
        assert calendar.reserve(now, ticket) == Grant(True, ticket)
    assert calendar.arrive(1.4, ticket).admitted
    spent = calendar.reserve(1.4, ticket)
    assert spent.spent
    assert not spent.admitted


@pytest.mark.parametrize("change", ["foreign", "hint"])
def test_reserve_keeps_no_slot_that_is_not_firm_and_ours(change: str) -> None:
    calendar, firm = promised()
    ticket = firm._replace(issuer=firm.issuer ^ 1) if change == "foreign" else firm._replace(kind="hint")
    calendar.advance(at(firm))
    empty(calendar, at(firm))
    assert not calendar.reserve(at(firm), ticket).admitted


def test_reserved_slot_after_its_hold_is_a_hint_again() -> None:
    calendar = start()
    ticket = calendar.reserve(0.0).ticket
    empty(calendar, 1.6)
    assert not calendar.reserve(1.6, ticket).admitted


def test_tokens_set_aside_keep_their_place_in_the_bucket_until_they_are_fetched() -> None:
    calendar = start()
    tickets = [calendar.reserve(0.0).ticket for _ in range(5)]
    assert not calendar.reserve(0.0).admitted
    calendar.advance(1.0)
    assert calendar.tokens == 0, "five are out"
    assert calendar.arrive(1.0, tickets[0]).admitted
    calendar.advance(1.05)
    calendar.advance(1.15)
    assert calendar.tokens == 1, "one was fetched, so one may be refilled"
    calendar.give_back()
    assert calendar.tokens == 1
    calendar.advance(1.7)
    assert calendar.tokens == 5, "the others were not: they are back"
    calendar.advance(9.0)
    assert calendar.tokens == 5


def test_fetched_firm_slot_frees_no_place_of_a_token_that_is_still_set_aside() -> None:
    calendar, firm = promised()
    calendar.give_back()
    reserved = calendar.reserve(0.2).ticket
    assert reserved is not None
    assert reserved.at_ms // 100 == firm.at_ms // 100
    assert calendar.arrive(0.2, firm).admitted
    calendar.advance(1.6)
    assert calendar.tokens == calendar.burst - 1
    assert calendar.arrive(1.6, reserved).admitted
    calendar.advance(1.8)
    assert calendar.tokens == calendar.burst


def test_slot_set_aside_beside_firm_slots_of_the_same_moment_gives_its_place_back_once() -> None:
    calendar, firm = promised()
    calendar.give_back()
    ticket = calendar.reserve(0.2).ticket
    assert ticket is not None
    assert ticket.at_ms // 100 == firm.at_ms // 100
    assert calendar.arrive(0.2, firm).admitted
    assert calendar.arrive(0.2, ticket).admitted
    calendar.advance(60.0)
    assert calendar.tokens == calendar.burst
    for _ in range(3):
        calendar.give_back()
    assert calendar.tokens == calendar.burst


def test_hint_for_another_reason_takes_no_token_and_is_not_too_soon() -> None:
    calendar = start()
    grant = calendar.hint(0.0, least_s=1.5)
    assert not grant.admitted
    assert at(grant.ticket) == 1.5
    assert grant.told_s == 1.5
    assert calendar.tokens == 5
    assert at(calendar.hint(0.0).ticket) == pytest.approx(0.2), "without a least time: its place in the refill"
    assert at(calendar.hint(0.0, least_s=0.1).ticket) == pytest.approx(0.3)


@pytest.mark.parametrize("rate", [0, 1, 5, 10, 40])
def test_hint_for_another_reason_is_not_too_soon_at_any_rate(rate: float) -> None:
    calendar = start()
    calendar.set_rate(rate, 0.0)
    grant = calendar.hint(0.0, least_s=2.0)
    assert 2 <= grant.told_s <= 10
    assert calendar.hint(0.0, grant.ticket, 3.0).told_s >= 3
    assert calendar.hint(0.0, grant.ticket, 3.0).ticket == grant.ticket


def test_hint_for_another_reason_is_not_too_soon_when_nothing_can_be_promised() -> None:
    calendar = start(Limits(rate=10, hint_cap_s=1, horizon_s=1))
    assert calendar.hint(0.0, least_s=2.5) == Grant(False, None, 2.5)


def test_hint_for_another_reason_exchanges_a_hint_that_was_kept() -> None:
    calendar = start()
    empty(calendar)
    hint = hint_ticket(calendar)
    assert calendar.hint(0.05, hint).ticket == hint
    grant = calendar.hint(at(hint), hint, 1.0)
    assert grant.ticket is not None
    assert grant.ticket.kind == "hint"
    assert at(grant.ticket) == pytest.approx(1.1)
    assert calendar.hints == 1, "the old one was kept, the new one is out"
    assert calendar.arrive(at(hint), hint).spent
    calendar.hint(at(hint), hint, 1.0)
    assert calendar.hints >= 2, "a spent one is worth nothing"


def test_hint_for_another_reason_uses_up_whatever_ticket_is_due() -> None:
    calendar, firm = promised()
    foreign = Ticket("hint", firm.at_ms, 7, 0)
    for ticket in (firm, foreign):
        grant = calendar.hint(at(firm), ticket, 1.0)
        assert grant.ticket is not None
        assert (grant.ticket.kind, grant.spent) == ("hint", False)
        assert calendar.hint(at(firm), ticket, 1.0).spent
        assert not calendar.arrive(at(firm), ticket).admitted
    calendar.advance(at(firm) + 1.7)
    assert calendar.tokens > 1, "the firm slot was given back"


def test_hint_for_another_reason_keeps_a_due_ticket_while_the_rate_is_zero() -> None:
    calendar, firm = promised()
    calendar.set_rate(0, at(firm))
    grant = calendar.hint(at(firm), firm, 1.0)
    assert grant.ticket == firm
    assert 5 <= grant.told_s <= 10


def test_pause_leaves_no_hints_to_wait_behind() -> None:
    calendar = start(Limits(rate=10))
    empty(calendar)
    calendar.set_rate(0, 0.0)
    told = [calendar.arrive(1.0) for _ in range(10_000)]
    assert {grant.ticket for grant in told} == {None}
    assert all(5 <= grant.told_s <= 10 for grant in told)
    calendar.set_rate(10, 2.0)
    assert calendar.arrive(2.0).told_s < 1


def test_lowered_rate_never_lets_in_at_once_what_was_promised_at_the_higher_one() -> None:
    calendar = start(Limits(rate=500))
    slots = [calendar.reserve(0.0).ticket for _ in range(500)]
    calendar.set_rate(5, 0.0)
    assert sum(calendar.arrive(1.6, slot).admitted for slot in slots) <= 14


def test_decisions_stay_quick_when_a_tiny_rate_was_raised() -> None:
    calendar = start(Limits(rate=0.001))
    calendar.set_rate(1000, 0.0)
    calls: list[float] = []
    settle = calendar._settle
    calendar._settle = lambda: (calls.append(calendar.v), settle())[1]  # type: ignore[method-assign, func-returns-value]
    for step in range(1_000):
        calendar.arrive(step / 1_000)
    assert 5 <= len(calls) <= 11, "ten times a second, however fast V runs"


def test_given_back_admission_is_a_token_again() -> None:
    calendar = start()
    empty(calendar)
    calendar.give_back()
    assert calendar.tokens == 1
    assert calendar.arrive(0.0).admitted


def test_is_due_from_its_time_to_the_end_of_its_grace() -> None:
    calendar = start()
    ticket = Ticket("hint", ORIGIN_MS + 1_000, 7, 0)
    moments = {0.999: False, 1.0: True, 2.0: True, 60.999: True, 61.002: False, 1e6: False}
    assert {now: calendar.is_due(ticket, now) for now in moments} == moments


def test_serials_number_the_promises_of_a_minute() -> None:
    calendar = start(Limits(rate=10, burst=1, hint_cap_s=600))
    empty(calendar)
    tickets = [hint_ticket(calendar) for _ in range(2_000)]
    assert len({(ticket.at_ms // 60_000, ticket.serial) for ticket in tickets}) == 2_000
    assert max(ticket.serial for ticket in tickets) < 600


@pytest.fixture
def two_serials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calendar_module, "MOST_SERIALS", 2)


@pytest.mark.usefixtures("two_serials")
def test_no_ticket_is_given_once_the_minute_has_no_serial_left() -> None:
    calendar = start()
    empty(calendar)
    tickets = [hint_ticket(calendar) for _ in range(2)]
    grant = calendar.arrive(0.0)
    assert grant.ticket is None
    assert 600 <= grant.told_s <= 1200
    assert calendar.hints == 2
    empty(calendar, 0.2)
    firm = calendar.firm
    refused = calendar.arrive(0.2, tickets[0])
    assert refused.ticket is None
    assert 600 <= refused.told_s <= 1200
    assert calendar.firm == firm, "no refill is set aside for nobody"


@pytest.mark.usefixtures("two_serials")
def test_reserve_without_a_serial_gives_its_token_back() -> None:
    calendar = start()
    assert all(calendar.reserve(0.0).admitted for _ in range(2))
    grant = calendar.reserve(0.0)
    assert not grant.admitted
    assert grant.ticket is None
    assert 600 <= grant.told_s <= 1200
    assert calendar.tokens == 3


def test_ticket_without_room_for_its_bit_is_worth_nothing() -> None:
    calendar, firm = promised()
    calendar._spent = SpentTickets(most_bytes=0)
    grant = calendar.arrive(at(firm), firm)
    assert grant.spent
    assert not grant.admitted


def kept(calendar: Calendar) -> int:
    """Everything a calendar holds that could grow."""
    promises = (calendar._firm, *calendar.classes)
    counts = [*(made.issued for made in promises), *(made.kept for made in promises)]
    counts += [calendar._serials, calendar._reserved]
    return sum(len(count) for count in counts) + calendar._spent.bytes


def test_denials_leave_nothing_behind_that_grows_with_them() -> None:
    """11.4: counts per 100 ms and serials per minute, however many were refused."""
    few, many = start(), start()
    for calendar, arrivals in ((few, 2_000), (many, 100_000)):
        for _ in range(arrivals):
            calendar.arrive(0.0)
    assert kept(many) <= kept(few) + 320, "hints lie within 30 s, so there are at most 300 counts of them"
    assert len(many.classes[0].issued) <= 301
    many.advance(700.0)
    assert kept(many) == 0
    assert many.hints == 0


def test_used_tickets_are_forgotten_after_their_grace() -> None:
    calendar = start()
    now = 0.0
    for _ in range(500):
        grant = calendar.arrive(now)
        while not grant.admitted:
            now += grant.told_s + 0.4
            grant = calendar.arrive(now, grant.ticket)
        for _ in range(20):
            ticket = calendar.arrive(now).ticket
            assert ticket is None or calendar.arrive(now, ticket).ticket == ticket
        now += 0.5
        assert len(calendar._serials) <= 4
        assert calendar._spent.bytes <= 4 * 600
    assert now > 240
    calendar.advance(now + 200)
    assert kept(calendar) == 0


def test_spent_ticket_is_remembered_as_long_as_it_could_be_shown() -> None:
    calendar, firm = promised(Limits(rate=10, burst=5, hold_s=200, grace_s=200))
    assert calendar.arrive(at(firm), firm).admitted
    for now in (30.0, 61.0, 100.0, 199.0, at(firm) + 199.9):
        assert calendar.arrive(now, firm).spent


def test_long_life_costs_no_precision() -> None:
    calendar = start(now=0.0)
    calendar.advance(3e8)  # ten years
    empty(calendar, 3e8)
    hint = hint_ticket(calendar, 3e8)
    assert calendar.arrive(3e8, hint).ticket == hint
    assert calendar.arrive(3e8 + 0.11, hint).admitted
    assert sys.float_info.epsilon * 3e8 < 1e-6


def test_unlimited_admits_every_arrival_and_promises_nothing() -> None:
    calendar = Unlimited((NORMAL,))
    ticket = Ticket("firm", ORIGIN_MS, 7, 0)
    calendar.advance(1.0)
    calendar.give_back()
    assert calendar.arrive(0.0, ticket) == calendar.reserve(0.0) == Grant(True)
    assert calendar.hint(0.0, ticket, 1.5) == Grant(False, None, 1.5)
    assert not calendar.is_due(ticket, ORIGIN_MS / 1000)
    assert calendar.rate is calendar.burst is calendar.tokens is None


def test_successor_keeps_the_firm_slots_of_the_former_and_gives_their_refill_to_nobody_else() -> None:
    successor = start(seed=2)
    successor.succeed(issuer=77, firm=1.0)
    assert not successor.arrive(0.95).admitted, "the refill up to 1 s is theirs"
    firm = Ticket("firm", ORIGIN_MS + 500, 77, 3)
    assert successor.arrive(0.96, firm).admitted
    assert not successor.arrive(0.97, firm).admitted, "once"
    successor.advance(30.0)
    assert successor.tokens == successor.burst, "nothing that was never counted is given back"


def test_hint_of_the_former_calendar_is_only_a_hint_and_a_firm_slot_that_is_over_too() -> None:
    successor = start(seed=2)
    successor.succeed(issuer=77, firm=10.0)
    for ticket in (Ticket("hint", ORIGIN_MS + 100, 77, 1), Ticket("firm", ORIGIN_MS + 100, 77, 2)):
        grant = successor.arrive(2.0, ticket)
        assert grant.ticket is not None
        assert grant.ticket.kind == "firm", "a slot of the successor's own"
