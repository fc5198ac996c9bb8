"""When a worker is left alone, and how it comes back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate import ConfigurationError
from herdgate_gateway.breaker import Breaker, BreakerSettings

SETTINGS = BreakerSettings(failures=3, open_s=5, ramp_s=10)


def broken(now: float = 0.0) -> Breaker:
    breaker = Breaker(SETTINGS)
    assert [breaker.fail(now, now) for _ in range(3)] == [False, False, True]
    return breaker


def back(now: float = 5.0) -> Breaker:
    breaker = broken()
    assert breaker.lets_through(now)
    assert breaker.begin()
    breaker.succeed(now)
    breaker.end_probe()
    return breaker


def test_failures_in_a_row_break_it() -> None:
    breaker = broken()

    assert breaker.state(0) == "broken"
    assert not breaker.lets_through(4.9)


def test_one_answer_between_them_and_it_stays_up() -> None:
    breaker = Breaker(SETTINGS)
    for _ in range(10):
        assert not breaker.fail(0, 0)
        assert not breaker.fail(0, 0)
        breaker.succeed(0)

    assert breaker.state(0) == "up"
    assert breaker.lets_through(0)


def test_one_probe_at_a_time() -> None:
    breaker = broken()

    assert breaker.lets_through(5)
    assert breaker.begin()
    assert not breaker.lets_through(5)
    breaker.end_probe()
    assert breaker.lets_through(5), "its client left, so somebody else may find out"


def test_a_probe_that_fails_keeps_it_broken_for_as_long_again() -> None:
    breaker = broken()
    breaker.begin()
    assert not breaker.fail(6, 5, probe=True)
    breaker.end_probe()

    assert not breaker.lets_through(10.9)
    assert breaker.lets_through(11)


def test_what_was_under_way_when_it_broke_is_old_news() -> None:
    breaker = broken()
    assert not breaker.fail(4, 0)
    assert breaker.lets_through(5)

    breaker = back(now=5)
    assert not breaker.fail(6, 0)
    assert breaker.state(6) == "ramping"


def test_its_share_grows_evenly_once_it_is_back() -> None:
    breaker = back(now=5)
    shares = []
    for second in range(10):
        let_through = 0
        for _ in range(100):
            if breaker.lets_through(5.5 + second):
                let_through += 1
                breaker.begin()
        shares.append(let_through)

    assert shares == sorted(shares)
    assert shares[0] <= 6
    assert 45 <= shares[5] <= 56
    assert shares[9] <= 96
    assert breaker.state(15) == "up"
    assert breaker.lets_through(15)


def test_a_failure_on_the_way_back_breaks_it_again() -> None:
    breaker = back(now=5)

    assert breaker.fail(7, 6)
    assert breaker.state(7) == "broken"


def test_without_a_ramp_it_is_back_at_once() -> None:
    breaker = Breaker(BreakerSettings(failures=1, open_s=1, ramp_s=0))
    breaker.fail(0, 0)
    breaker.succeed(1)

    assert breaker.state(1) == "up"
    assert breaker.lets_through(1)


@pytest.mark.parametrize(
    ("field", "value"), [("failures", 0), ("failures", 1.5), ("open_s", -1), ("ramp_s", float("nan")), ("open_s", "5")]
)
def test_a_setting_out_of_range_is_named(field: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=field):
        BreakerSettings(**{field: value})


@given(st.lists(st.tuples(st.sampled_from(["answer", "fail", "leave"]), st.floats(0, 3)), max_size=60))
def test_a_broken_worker_sees_at_most_one_arrival_in_open_s(events: list[tuple[str, float]]) -> None:
    breaker, now = Breaker(SETTINGS), 0.0
    for what, passes in events:
        now += passes
        was = breaker.state(now)
        if not breaker.lets_through(now):
            assert was != "up"
            continue
        probe = breaker.begin()
        assert probe == (was == "broken")
        if what == "answer":
            breaker.succeed(now)
            assert breaker.state(now) != "broken"
        elif what == "fail":
            breaker.fail(now, now, probe=probe)
        if probe:
            breaker.end_probe()
            if what == "fail":
                assert not breaker.lets_through(now + SETTINGS.open_s - 0.01)
