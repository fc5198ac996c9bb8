"""Where a gateway sends its arrivals while Redis is away."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate.stores.redis.local_rooms import LocalRooms
from tests.herdgate.stores.redis.test_local_share import last

A, B = "ws://a:1", "ws://b:1"


def rooms_of(gateways: int = 1, held: dict[str, int] | None = None, **rooms: float) -> LocalRooms:
    known = LocalRooms()
    told = {{"a": A, "b": B}[name]: room for name, room in rooms.items()}
    known.learn(last(gateways=gateways)._replace(rooms=told), held or {})
    return known


def taken(rooms: LocalRooms, held: dict[str, int], most: int = 100) -> dict[str, int]:
    """What it takes of a crowd."""
    held = dict(held)
    for _ in range(most):
        worker = rooms.choose([A, B], held)
        if worker is None:
            break
        held[worker] = held.get(worker, 0) + 1
    return held


def test_a_gateway_keeps_what_it_holds_and_gets_its_part_of_what_is_left() -> None:
    assert taken(rooms_of(3, {A: 4, B: 1}, a=10, b=2), {A: 4, B: 1}) == {A: 7, B: 1}


def test_a_place_that_is_left_may_be_taken_again() -> None:
    assert taken(rooms_of(3, {A: 4}, a=0, b=0), {A: 1}) == {A: 4}


@pytest.mark.parametrize("held", [0, 3])
def test_a_worker_that_wants_nobody_gets_nobody(held: int) -> None:
    assert rooms_of(1, {A: 3}, a=-1, b=0).choose([A, B], {A: held}) is None


def test_without_reports_there_is_room_for_all_in_turns() -> None:
    assert taken(rooms_of(2, a=math.inf), {}, 10) == {A: 5, B: 5}
    assert taken(LocalRooms(), {}, 10) == {A: 5, B: 5}


def test_the_least_used_part_is_next() -> None:
    assert taken(rooms_of(1, a=30, b=10), {}, 20) == {A: 15, B: 5}


def test_what_was_told_holds_while_nothing_is_known() -> None:
    rooms = rooms_of(1, a=2, b=0)
    rooms.learn(last()._replace(rooms={}), {})
    assert taken(rooms, {}) == {A: 2}


@given(capacity=st.integers(0, 50), held=st.lists(st.integers(0, 12), min_size=1, max_size=5))
def test_gateways_that_know_the_same_never_exceed_a_capacity_together(capacity: int, held: list[int]) -> None:
    room = max(0, capacity - sum(held))
    parts = [taken(rooms_of(len(held), {A: own}, a=room, b=-1), {A: own})[A] for own in held]
    assert sum(parts) <= max(capacity, sum(held))
