"""How fast sockets move."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_gateway.worker_kit.pace import pause_s, within_s


def test_half_of_the_fleets_rate_is_taken() -> None:
    assert pause_s(10, 90, 100.0, 1_000.0) == pytest.approx(10 / 50)


def test_a_slow_fleet_does_not_outlast_the_time() -> None:
    assert pause_s(10, 90, 1.0, 10.0) == pytest.approx(1.0)


@pytest.mark.parametrize("rate", [None, 0.0])
def test_without_a_rate_they_are_spread_over_the_time(rate: float | None) -> None:
    assert pause_s(25, 75, rate, 20.0) == pytest.approx(5.0)


@pytest.mark.parametrize(("left", "left_s"), [(0, 10.0), (5, 0.0), (5, -1.0)])
def test_nobody_waits_for_nothing(left: int, left_s: float) -> None:
    assert pause_s(5, left, 10.0, left_s) == 0.0


def test_time_is_longer_where_the_rate_is_known() -> None:
    assert (within_s(30.0, None), within_s(30.0, 5.0)) == (15.0, 24.0)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=60), st.floats(0, 5_000), st.floats(0.5, 100))
def test_all_are_moved_in_time_and_never_faster_than_needed(weights: list[int], rate: float, time_s: float) -> None:
    now, left = 0.0, sum(weights)
    fastest = max(0.5 * rate, 1.0001 * left / time_s)
    for moved in weights:
        left -= moved
        pause = pause_s(moved, left, rate, time_s - now)
        assert pause >= 0
        assert not left or pause >= moved / fastest * 0.999
        now += pause
    assert now <= time_s * 1.001
