"""A perfect gate, and how far a real one was from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_loadtest.replay.ideal import beyond_bucket, ideal_s

moments = st.lists(st.floats(0, 50), min_size=1, max_size=60)


def test_a_crowd_in_one_instant_is_in_after_its_number_less_the_burst() -> None:
    assert ideal_s([0.0] * 110, rate=10, burst=10) == pytest.approx(10.0)


def test_who_comes_within_the_rate_does_not_wait() -> None:
    assert ideal_s([0.0, 1.0, 2.0], rate=1, burst=1) == pytest.approx(2.0)


def test_tokens_that_nobody_takes_are_kept_up_to_the_burst() -> None:
    assert ideal_s([0.0, 100.0, 100.0, 100.0], rate=1, burst=2) == pytest.approx(101.0)


def test_nobody_is_in_at_once() -> None:
    assert ideal_s([], rate=1, burst=1) == 0


def test_admissions_at_the_rate_stay_within_the_bucket() -> None:
    assert beyond_bucket([0.0, 0.0, 1.0, 2.0], rate=1, burst=2) <= 0


def test_admissions_beyond_it_are_counted_in_the_worst_window() -> None:
    assert beyond_bucket([0.0] * 5 + [10.0], rate=1, burst=2) == pytest.approx(3)


@given(arrivals=moments, rate=st.floats(0.5, 20), burst=st.integers(1, 10))
def test_the_perfect_gate_is_never_late_and_never_early(arrivals: list[float], rate: float, burst: int) -> None:
    done = ideal_s(arrivals, rate=rate, burst=burst)
    assert done >= max(arrivals)
    assert done <= max(arrivals) + len(arrivals) / rate + 1e-6


@given(arrivals=moments, rate=st.floats(0.5, 20), burst=st.integers(1, 10))
def test_what_the_perfect_gate_admits_is_within_its_bucket(arrivals: list[float], rate: float, burst: int) -> None:
    admitted = [ideal_s(sorted(arrivals)[: number + 1], rate=rate, burst=burst) for number in range(len(arrivals))]
    assert beyond_bucket(admitted, rate=rate, burst=burst) <= 1e-6
