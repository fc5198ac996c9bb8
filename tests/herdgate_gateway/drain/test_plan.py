"""How the time of a drain is used, and its pace."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_gateway.drain.plan import CATCH_UP_S, HANG_UP_S, MOST_AT_ONCE, Pace, Schedule, needed_s, outlook

SECONDS = st.floats(0, 1_000)


def test_rest_is_closed_a_second_before_the_deadline() -> None:
    schedule = Schedule(100.0, 25.0)
    assert (schedule.began, schedule.rest_at, schedule.ends_at) == (100.0, 124.0, 125.0)


def test_deadline_of_0_leaves_a_second_to_hang_up() -> None:
    schedule = Schedule(100.0, 0.0)
    assert (schedule.rest_at, schedule.ends_at) == (100.0, 101.0)


@given(SECONDS, SECONDS, SECONDS)
def test_another_deadline_only_shortens(within_s: float, later_s: float, other_s: float) -> None:
    schedule = Schedule(0.0, within_s)
    before = schedule.ends_at
    schedule.shorten(later_s, other_s)
    if later_s + other_s < within_s:
        assert schedule.ends_at == max(later_s + HANG_UP_S, later_s + other_s)
    else:
        assert schedule.ends_at == before
    assert schedule.began == 0.0


@given(st.floats(0.1, 1_000), st.lists(st.floats(0, 2), max_size=50))
def test_pace_is_never_exceeded_and_late_looks_make_up_for_little(per_s: float, pauses: list[float]) -> None:
    pace, now, taken = Pace(0.0), 0.0, 0
    for pause_s in pauses:
        now += pause_s
        whole = pace.take(now, per_s)
        assert whole <= max(1.0, CATCH_UP_S * per_s)
        taken += whole
    assert taken <= 1 + now * per_s + 1e-6


def test_pace_is_kept_by_looks_that_come_in_time() -> None:
    pace = Pace(0.0)
    assert sum(pace.take(look / 50, 100.0) for look in range(1, 501)) == pytest.approx(1_000, abs=2)


def test_without_a_rate_a_lot_goes_at_once() -> None:
    assert Pace(0.0).take(0.0, None) == MOST_AT_ONCE
    assert needed_s(5_000, None) == 0.0


@pytest.mark.parametrize(
    ("sockets", "per_s", "within_s", "told"),
    [
        (6_000, 100.0, 120.0, "60.0 s at 100/s"),
        (20_000, 100.0, 120.0, "200.0 s at 100/s, 80.0 s short: the last 8,000 are closed together"),
        (5, 0.0, 10.0, "nobody at 0/s, unless that changes: all are closed together in 10.0 s"),
        (5, None, 10.0, "as fast as they can be told, for there is no rate"),
        (0, 0.0, -1.0, "0.0 s at 0/s"),
    ],
)
def test_case_3_16_whether_the_time_will_do_is_said(
    sockets: int, per_s: float | None, within_s: float, told: str
) -> None:
    assert outlook(sockets, per_s, within_s) == told


def test_nobody_left_needs_no_time_and_a_rate_of_0_for_ever() -> None:
    assert needed_s(0, 0.0) == 0.0
    assert math.isinf(needed_s(1, 0.0))
