"""When to sweep which shards."""

from itertools import accumulate, pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_gateway.leases.agenda import Agenda, Task

LONGEST_S = 66.0
"""Between two sweeps of all that is mine: a minute, and a tenth on top."""


def middle() -> float:
    return 0.5


def done_until(agenda: Agenda, begin: float, end: float) -> list[tuple[float, Task]]:
    """What is done by somebody who does everything at once."""
    now, done = begin, list[tuple[float, Task]]()
    while now + agenda.wait_s(now) <= end:
        now += agenda.wait_s(now)
        done += [(round(now, 6), task) for task in agenda.take_due(now)]
    return done


def test_nothing_is_to_be_done_before_there_was_any_news() -> None:
    agenda = Agenda(middle)
    assert agenda.wait_s(5.0) == inf
    assert agenda.take_due(5.0) == []


def test_news_is_a_sweep_of_mine_at_once_of_the_second_ones_then_of_all_and_then_every_minute() -> None:
    agenda = Agenda(middle)
    agenda.news(100.0)
    assert done_until(agenda, 100.0, 250.0) == [
        (100.0, "first"),
        (102.0, "second"),
        (110.0, "mine"),
        (170.0, "mine"),
        (230.0, "mine"),
    ]


@given(st.floats(0.0, 1.0, exclude_max=True))
def test_sweeps_of_all_are_spread_by_a_tenth(chance: float) -> None:
    agenda = Agenda(lambda: chance)
    agenda.news(0.0)
    moments = [at for at, task in done_until(agenda, 0.0, 90.0) if task == "mine"]
    assert moments[0] == pytest.approx(10.0 * (0.9 + 0.2 * chance))
    assert moments[1] - moments[0] == pytest.approx(60.0 * (0.9 + 0.2 * chance))


def test_what_is_unclear_is_looked_at_again_soon() -> None:
    agenda = Agenda(middle)
    agenda.look_again(5.0)
    assert agenda.wait_s(5.0) == pytest.approx(0.3)
    assert agenda.take_due(5.29) == []
    assert agenda.take_due(5.31) == ["first"]
    assert agenda.wait_s(5.31) == inf


def test_what_is_unclear_does_not_put_off_what_is_due_before() -> None:
    agenda = Agenda(middle)
    agenda.news(5.0)
    agenda.look_again(5.0)
    assert agenda.take_due(5.0) == ["first"]


def test_what_was_taken_is_off_the_list() -> None:
    agenda = Agenda(middle)
    agenda.news(0.0)
    assert agenda.take_due(20.0) == ["first", "second", "mine"]
    assert agenda.take_due(20.0) == []
    assert agenda.wait_s(20.0) == pytest.approx(60.0)


def test_what_is_overdue_is_not_waited_for() -> None:
    agenda = Agenda(middle)
    agenda.news(0.0)
    assert agenda.wait_s(1_000.0) == 0.0


def test_news_that_is_to_come_is_waited_for() -> None:
    agenda = Agenda(middle)
    agenda.news(7.0)
    assert agenda.wait_s(5.0) == pytest.approx(2.0)


@given(st.lists(st.floats(0.05, 9.0), min_size=1, max_size=60), st.floats(0.0, 1.0, exclude_max=True))
def test_all_that_is_mine_is_swept_in_a_minute_however_often_there_is_news(pauses: list[float], chance: float) -> None:
    """A worker that crashes again and again is news each time, and must not keep the others from their sweeps."""
    agenda, done = Agenda(lambda: chance), [0.0]
    times = list(accumulate(pauses))
    for at, following in zip(times, [*times[1:], times[-1] + LONGEST_S], strict=True):
        agenda.news(at)
        done += [when for when, task in done_until(agenda, at, following) if task == "mine"]
    assert max(after - before for before, after in pairwise(done)) <= LONGEST_S + 0.01
