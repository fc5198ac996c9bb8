"""What others have decided in a calendar's place is taken over: refill is handed out once, tickets are used once."""

import random

import pytest

from herdgate.core.calendar import Calendar
from herdgate.core.classes import AdmissionClass
from herdgate.core.limits import Limits
from herdgate.core.tickets import Ticket


def calendar(burst: float = 50, **more: object) -> Calendar:
    """Without tokens, at 10/s."""
    made = Calendar(Limits(rate=10, burst=burst, **more), random.Random(1).random, 0.0)  # type: ignore[arg-type]
    made.tokens = 0.0
    return made


@pytest.mark.parametrize(("paid", "tokens"), [(0.0, 10), (0.4, 6), (1.0, 0), (7.0, 0)])
def test_refill_that_was_handed_out_elsewhere_accrues_no_more(paid: float, tokens: float) -> None:
    subject = calendar()
    subject.catch_up(1.0, 0.0, paid)
    assert subject.v == 1.0
    assert subject.tokens == pytest.approx(tokens)


def test_refill_of_firm_slots_stays_theirs() -> None:
    subject = calendar()
    for _ in range(8):
        subject.defer(0.0)
    subject.catch_up(1.0, 0.0, 0.5)
    assert subject.tokens == pytest.approx(2)


def test_v_comes_as_far_as_others_have_brought_it_and_what_is_over_is_settled() -> None:
    subject = calendar()
    for _ in range(5):
        subject.defer(0.0)
    subject.catch_up(1.0, 6.0, 6.0)
    assert (subject.v, subject.tokens) == (6.0, 5), "slots that nobody fetched return"
    subject.catch_up(2.0, 6.0, 6.0)
    assert subject.v == 7.0


def test_classes_have_no_part_in_what_was_handed_out_elsewhere() -> None:
    subject = calendar(classes=(AdmissionClass("a", 0.5), AdmissionClass("b", 0.5)))
    subject.catch_up(0.4, 0.0, 0.9)
    assert [hints.allowance for hints in subject.classes] == [0, 0]


def test_ticket_that_has_admitted_elsewhere_is_used_and_its_slot_is_kept() -> None:
    subject = calendar()
    first, second = (subject.defer(0.0).ticket for _ in range(2))
    assert first is not None
    assert second is not None
    subject.count_used(first)
    subject.count_used(first)
    subject.catch_up(0.2, 0.2, 0.2)
    assert not subject.arrive(0.2, first).admitted
    assert subject.arrive(0.2, second).admitted
    subject.catch_up(3.0, 3.0, 3.0)
    assert subject.tokens == 0


def test_ticket_of_a_time_that_is_forgotten_is_left_out() -> None:
    subject = calendar()
    subject.advance(200.0)
    subject.count_used(Ticket("firm", 1_000, 7, 1))
    assert not subject._spent.bytes
