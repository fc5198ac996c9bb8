"""The rate of one client: how much any window admits, and how exactly."""

from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from herdgate.core.gcra import NEVER_S, KeyedGcra
from herdgate.core.limits import MOST_BURST
from herdgate.core.numbers import LEAST_RATE, MOST_RATE

UPTIMES = [0.0, 0.1, 59.9, 86_400.0, 1e7, 1e7 + 1 / 3]
KEY = "ip:192.0.2.1"


def offer(gcra: KeyedGcra, times: Iterable[float], key: str = KEY) -> list[float]:
    """The times at which an arrival conformed."""
    passed = []
    for now in times:
        if not gcra.wait(key, now):
            gcra.charge(key, now)
            passed.append(now)
    return passed


def gcra_of(rate: float, burst: float | None = None) -> KeyedGcra:
    return KeyedGcra(rate, burst, most_keys=100)


rates = st.floats(0.01, 1_000)
bursts = st.integers(1, 20)
uptimes = st.sampled_from(UPTIMES)


@given(rate=rates, burst=bursts, start=uptimes, gaps=st.lists(st.floats(0, 3), min_size=1, max_size=120))
@example(rate=3.0, burst=3, start=1e7, gaps=[0.0] * 4 + [1.0] + [0.0] * 4)
def test_any_window_admits_at_most_its_burst_and_its_rate(
    rate: float, burst: int, start: float, gaps: list[float]
) -> None:
    times = [start]
    for gap in gaps:  # in terms of the interval, so that most of them matter
        times.append(times[-1] + gap / rate)

    passed = offer(gcra_of(rate, burst), times)

    # Intervals are whole nanoseconds: at most a millionth off up to 1,000 a second; 1e7 s is known to 2 ns.
    for first in range(len(passed)):
        for last in range(first, len(passed)):
            window = passed[last] - passed[first]
            assert last - first + 1 <= burst + window * rate * (1 + 1e-6) + 1e-5


@given(rate=st.floats(0.01, 1e6), burst=st.integers(1, 500), now=st.one_of(uptimes, st.floats(0, 1e7)))
def test_burst_of_n_admits_exactly_n_at_any_uptime(rate: float, burst: int, now: float) -> None:
    assert len(offer(gcra_of(rate, burst), [now] * (burst + 5))) == burst


@pytest.mark.parametrize("now", UPTIMES)
def test_burst_is_whole_again_after_as_long_as_it_takes_to_refill(now: float) -> None:
    gcra = gcra_of(rate=3, burst=3)
    assert len(offer(gcra, [now] * 5)) == 3
    assert len(offer(gcra, [now + 1.000001] * 5)) == 3


@pytest.mark.parametrize(("rate", "burst"), [(0.1, 1), (1, 1), (1.5, 1), (250, 250)])
def test_burst_is_one_second_of_the_rate_unless_said(rate: float, burst: int) -> None:
    assert len(offer(gcra_of(rate), [0.0] * 300)) == burst


@pytest.mark.parametrize("burst", [1.0, 1.5, 1.999])
def test_a_fraction_of_an_arrival_is_none(burst: float) -> None:
    assert len(offer(gcra_of(1, burst), [0.0] * 5)) == 1


@given(rate=rates, burst=bursts, start=uptimes, gaps=st.lists(st.floats(0, 1), max_size=40))
def test_told_wait_is_neither_too_short_nor_too_long(rate: float, burst: int, start: float, gaps: list[float]) -> None:
    gcra, now = gcra_of(rate, burst), start
    for gap in gaps:
        now += gap / rate
        wait = gcra.wait(KEY, now)
        if wait > 2e-6:
            assert gcra.wait(KEY, now + wait - 1e-6) > 0
            assert gcra.wait(KEY, now + wait + 1e-6) == 0
        offer(gcra, [now])


def test_asking_is_free() -> None:
    gcra = gcra_of(1, 5)
    assert [gcra.wait(KEY, 0.0) for _ in range(100)] == [0.0] * 100
    assert len(gcra) == 0
    assert len(offer(gcra, [0.0] * 10)) == 5


def test_refusals_do_not_lengthen_the_wait() -> None:
    gcra = gcra_of(1)
    offer(gcra, [0.0])
    assert offer(gcra, [hundredth / 100 for hundredth in range(100)]) == []
    assert gcra.wait(KEY, 0.25) == 0.75
    assert offer(gcra, [1.0]) == [1.0]


def test_keys_do_not_share_a_quota() -> None:
    gcra = gcra_of(1, 5)
    assert [len(offer(gcra, [0.0] * 10, key)) for key in ("a", "b", "c")] == [5, 5, 5]


def test_rate_zero_admits_nobody() -> None:
    gcra = gcra_of(0)
    assert offer(gcra, [0.0, 1e3, 1e7]) == []
    assert gcra.wait(KEY, 0.0) == NEVER_S


def test_sixty_a_minute_at_the_end_of_one_minute_leaves_nothing_for_the_start_of_the_next() -> None:
    """CASES 2.14."""
    gcra = gcra_of(rate=1, burst=60)
    assert len(offer(gcra, [59.9] * 60)) == 60
    assert len(offer(gcra, [60.1] * 60)) == 0  # burst + 0.2 s x 1/s is 60.2, and 60 are in
    assert len(offer(gcra, [60.9] * 60)) == 1
    assert len(offer(gcra, [89.9] * 60)) == 29


def test_a_clock_that_goes_back_frees_nobody_and_locks_nobody_out() -> None:
    gcra = gcra_of(1, 3)
    assert len(offer(gcra, [1000.0] * 3)) == 3
    assert offer(gcra, [989.0] * 3) == []
    assert len(offer(gcra, [1003.0] * 5)) == 3


@pytest.mark.parametrize("rate", [LEAST_RATE, 1e-5, MOST_RATE])
@pytest.mark.parametrize("now", [0.0, 1e7])
def test_rates_at_the_ends_of_the_range_work(rate: float, now: float) -> None:
    assert len(offer(gcra_of(rate, 2), [now] * 4)) == 2
    huge = KeyedGcra(rate, MOST_BURST, most_keys=1)
    for key in ("a", "b"):
        assert len(offer(huge, [now] * 4, key)) == 4


def test_smallest_rate_in_shared_cells_works() -> None:
    gcra = KeyedGcra(LEAST_RATE, 100.0, most_keys=1)
    assert [len(offer(gcra, [0.0] * 200, key)) for key in ("a", "b", "c")] == [100, 100, 0]


@given(rate=rates, burst=bursts, gaps=st.lists(st.tuples(st.floats(0, 3), st.booleans()), min_size=1, max_size=60))
def test_charge_given_back_at_once_has_never_been(rate: float, burst: int, gaps: list[tuple[float, bool]]) -> None:
    gcra, other = gcra_of(rate, burst), gcra_of(rate, burst)
    now = 1e7
    for gap, stays in gaps:
        now += gap / rate
        assert abs(gcra.wait(KEY, now) - other.wait(KEY, now)) < 1e-6
        if gcra.wait(KEY, now) or other.wait(KEY, now):
            continue
        gcra.charge(KEY, now)
        if stays:
            other.charge(KEY, now)
        else:
            gcra.give_back(KEY, now, now)


def test_charge_given_back_beside_others_is_one_more_arrival() -> None:
    gcra = gcra_of(1, 3)
    assert len(offer(gcra, [0.0, 0.0, 0.5])) == 3
    gcra.give_back(KEY, charged_at=0.0, now=0.9)
    assert len(offer(gcra, [0.9] * 3)) == 1


def test_charge_given_back_too_late_frees_nobody() -> None:
    gcra = gcra_of(1, 1)
    assert offer(gcra, [0.0, 1.5]) == [0.0, 1.5]
    gcra.give_back(KEY, charged_at=0.0, now=1.5)
    assert offer(gcra, [1.5]) == []


def test_key_that_was_forgotten_has_nothing_to_give_back() -> None:
    gcra = KeyedGcra(1, 1, most_keys=1)
    offer(gcra, [0.0], "a")
    gcra.give_back("b", charged_at=0.0, now=0.5)
    assert (offer(gcra, [0.5], "a"), offer(gcra, [1.0], "a")) == ([], [1.0])
