"""The wheel: whatever is put in comes out earliest first."""

import random

from herdgate_loadtest.simulate.wheel import Wheel

SEED = 5


def all_of(wheel: Wheel, before: float = float("inf")) -> list[tuple[float, int]]:
    found = []
    while (entry := wheel.pop(before)) is not None:
        found.append(entry)
    return found


def test_entries_come_earliest_first_and_by_number_at_the_same_moment() -> None:
    rng = random.Random(SEED)
    entries = [(rng.choice([rng.uniform(0, 50), rng.randrange(50)]), client) for client in range(5_000)]
    wheel = Wheel()
    for at, client in entries:
        wheel.put(at, client)
    assert all_of(wheel) == sorted(entries), f"seed {SEED}"


def test_what_is_put_while_it_runs_takes_its_place() -> None:
    rng = random.Random(SEED)
    wheel = Wheel()
    for client in range(200):
        wheel.put(rng.uniform(0, 0.1), client)
    found: list[float] = []
    while (entry := wheel.pop(60)) is not None:
        at, client = entry
        found.append(at)
        wheel.put(at + rng.choice([1e-6, 0.004, 0.3, 7]), client)
    assert found == sorted(found), f"seed {SEED}"
    assert len(found) > 5_000


def test_nothing_comes_before_its_bound() -> None:
    wheel = Wheel()
    for at, client in ((1.0, 1), (1.001, 2), (2.0, 3)):
        wheel.put(at, client)
    assert wheel.pop(1.0) is None
    assert all_of(wheel, 1.001) == [(1.0, 1)]
    wheel.put(1.0005, 4)
    assert all_of(wheel) == [(1.0005, 4), (1.001, 2), (2.0, 3)]


def test_who_is_dropped_does_not_come() -> None:
    wheel = Wheel()
    for client in range(10):
        wheel.put(0.001 + client // 5, client)
    assert wheel.pop(10) == (0.001, 0)
    wheel.drop({1, 6, 9})
    assert [client for _, client in all_of(wheel)] == [2, 3, 4, 5, 7, 8]
