"""The rate follows how the workers fare: `control.lua` on a real Redis, with time as an argument."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from herdgate import Limits
from herdgate.stores.redis.reporter import REPORT
from tests.herdgate.stores.redis.model import PREFIX, Fleet
from tests.redis_servers import redis_server

A, B = "ws://a:1", "ws://b:1"
CONTROL = {"rate_min": 20.0, "setup_s": 1.0, "pending_share": 0.1}


@pytest.fixture(scope="module")
def client() -> Iterator[Redis]:
    with ExitStack() as stack:
        redis = stack.enter_context(redis_server())
        yield stack.enter_context(Redis.from_url(redis.url))


@pytest.fixture
def fleet(client: Redis) -> Fleet:
    """Rate 100, floor 20, at second 0."""
    fleet = Fleet(client, Limits(rate=100.0), control=CONTROL)
    rate_at(fleet, 0.0)
    return fleet


def report(
    client: Redis, worker: str = A, *, setup_s: float = 0.1, pending: int = 0, capacity: int | None = 100
) -> None:
    room = "" if capacity is None else capacity
    words = [worker, room, 0, pending, setup_s, 0.0, "UP", json.dumps({"": pending})]
    client.eval(REPORT.text, 1, f"{PREFIX}:calendar", *words)


def rate_at(fleet: Fleet, now: float, **head: Any) -> float:
    """The rate after a call at this second."""
    return fleet.call(now=now, **{"workers": [A, B], **head}).rate


def test_one_slow_worker_takes_three_tenths_off_each_second_down_to_the_floor(client: Redis, fleet: Fleet) -> None:
    report(client, A)
    report(client, B, setup_s=1.01)
    rates = [rate_at(fleet, float(second)) for second in range(1, 7)]
    assert rates == pytest.approx([70, 49, 34.3, 24.01, 20, 20])


def test_the_target_itself_is_within_the_target(client: Redis, fleet: Fleet) -> None:
    report(client, A, setup_s=1.0, pending=10)
    assert rate_at(fleet, 1.0) == 100


def test_pending_set_ups_count_by_their_share_of_the_capacity(client: Redis, fleet: Fleet) -> None:
    report(client, A, pending=11)
    assert rate_at(fleet, 1.0) == pytest.approx(70)


@pytest.mark.parametrize("capacity", [None, 0])
def test_without_a_capacity_there_is_no_share(client: Redis, fleet: Fleet, capacity: int | None) -> None:
    report(client, A, pending=1_000, capacity=capacity)
    assert rate_at(fleet, 1.0) == 100


def test_it_rises_by_two_hundredths_of_the_set_rate_up_to_it(client: Redis, fleet: Fleet) -> None:
    report(client, A, setup_s=2.0)
    rate_at(fleet, 1.0)
    report(client, A)
    rates = [rate_at(fleet, float(second)) for second in range(2, 19)]
    assert rates == pytest.approx([*range(72, 101, 2), 100, 100])


def test_a_second_has_one_step_whoever_calls(client: Redis, fleet: Fleet) -> None:
    report(client, A, setup_s=2.0)
    rates = [rate_at(fleet, 1 + tenth / 10, gateway=str(tenth % 3)) for tenth in range(10)]
    assert rates == pytest.approx([70] * 10)
    assert rate_at(fleet, 2.0, gateway="another") == pytest.approx(49)


def test_a_worker_that_has_fallen_silent_keeps_the_rate_from_rising(client: Redis, fleet: Fleet) -> None:
    report(client, A, setup_s=2.0)
    rate_at(fleet, 1.0)
    client.delete(f"{PREFIX}:worker:{A}")
    assert rate_at(fleet, 2.0) == pytest.approx(70)
    assert rate_at(fleet, 3.0) == pytest.approx(70)
    report(client, A)
    assert rate_at(fleet, 4.0) == pytest.approx(72)


def test_workers_that_never_report_change_nothing(fleet: Fleet) -> None:
    assert [rate_at(fleet, float(second)) for second in range(1, 4)] == [100, 100, 100]


def test_what_operators_set_is_the_ceiling_from_then_on(client: Redis, fleet: Fleet) -> None:
    report(client, A)
    assert rate_at(fleet, 1.0, set_rate=50.0) == 50
    assert rate_at(fleet, 2.0) == 50
    report(client, A, setup_s=2.0)
    assert rate_at(fleet, 3.0) == pytest.approx(35)
    report(client, A)
    assert rate_at(fleet, 4.0) == pytest.approx(36), "2 % of 50"


def test_settings_with_another_rate_are_the_ceiling_too(client: Redis, fleet: Fleet) -> None:
    report(client, A)
    assert rate_at(fleet, 1.0, configure=200.0) == 200
    assert rate_at(fleet, 2.0) == 200


def test_a_rate_below_the_floor_stays_as_it_was_set(client: Redis, fleet: Fleet) -> None:
    report(client, A, setup_s=2.0)
    assert rate_at(fleet, 1.0, set_rate=5.0) == 5
    assert rate_at(fleet, 2.0) == 5


def test_nobody_is_admitted_at_rate_zero_however_the_workers_fare(client: Redis, fleet: Fleet) -> None:
    report(client, A)
    assert [rate_at(fleet, 1.0, set_rate=0.0), rate_at(fleet, 2.0), rate_at(fleet, 3.0)] == [0, 0, 0]


def test_without_control_the_rate_stays_as_set(client: Redis) -> None:
    fleet = Fleet(client, Limits(rate=100.0))
    rate_at(fleet, 0.0)
    report(client, A, setup_s=9.0)
    assert rate_at(fleet, 5.0) == 100


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.1, 0.5, 1.0, 2.5]), st.booleans()), max_size=40))
def test_it_stays_between_floor_and_ceiling_and_ends_where_it_was(
    client: Redis, steps: list[tuple[float, bool]]
) -> None:
    fleet, now = Fleet(client, Limits(rate=100.0), control=CONTROL), 0.0
    for step_s, is_slow in steps:
        now += step_s
        report(client, A, setup_s=3.0 if is_slow else 0.0)
        assert 20 <= rate_at(fleet, now) <= 100
    report(client, A)
    for _ in range(41):  # from the floor: 80 in steps of 2, and one that may have been taken already
        now += 1
        rate_at(fleet, now)
    assert rate_at(fleet, now) == 100
