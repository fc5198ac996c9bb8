"""The bounded table of client keys, under floods."""

import random
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate.core.gcra import KeyedGcra
from herdgate.core.table import TatTable
from herdgate.memory import resident_bytes

S = 1_000_000_000
MIB = 1 << 20


def passes(gcra: KeyedGcra, key: str, now: float) -> bool:
    if gcra.wait(key, now):
        return False
    gcra.charge(key, now)
    return True


def fresh_keys(count: int) -> Iterator[str]:
    return (f"ip:10.{number >> 16}.{number >> 8 & 255}.{number & 255}" for number in range(count))


def test_an_unknown_key_has_no_arrival_time() -> None:
    assert TatTable(10, 0).get("a") == 0


def test_what_was_put_is_got() -> None:
    table = TatTable(10, 0)
    table.put("a", 5 * S, 0)
    table.put("a", 6 * S, 0)
    assert (table.get("a"), len(table)) == (6 * S, 1)


def test_least_recently_used_key_makes_room() -> None:
    table = TatTable(2, tolerance_ns=10 * S)
    for key in ("a", "b", "a", "c"):
        table.put(key, 1 * S, 0)
    assert [table.get(key) for key in "abc"] == [1 * S, 0, 1 * S]


def test_a_key_over_its_limit_is_passed_over() -> None:
    table = TatTable(2, tolerance_ns=10 * S)
    table.put("over", 11 * S, 0)
    table.put("within", 10 * S, 0)
    table.put("new", 1 * S, 0)
    assert [table.get(key) for key in ("over", "within", "new")] == [11 * S, 0, 1 * S]


def test_a_key_over_its_limit_may_go_once_its_penalty_is_over() -> None:
    table = TatTable(1, tolerance_ns=10 * S)
    table.put("over", 11 * S, 0)
    table.put("new", 2 * S, 1 * S)
    assert (table.get("over"), table.get("new"), len(table)) == (0, 2 * S, 1)


def test_expired_keys_go_as_the_table_is_used() -> None:
    table = TatTable(1000, tolerance_ns=0)
    for number in range(500):
        table.put(f"old {number}", 1 * S, 0)
    for number in range(400):
        table.put(f"new {number}", 9 * S, 2 * S)
    assert len(table) == 400


def test_a_key_not_yet_expired_ends_the_sweep() -> None:
    table = TatTable(1000, tolerance_ns=0)
    table.put("long", 100 * S, 0)
    table.put("short", 1 * S, 0)
    table.put("new", 5 * S, 2 * S)
    assert len(table) == 3


def test_keys_that_find_no_place_share_cells_and_are_not_forgotten() -> None:
    table = TatTable(1, tolerance_ns=0)
    table.put("over", 9 * S, 0)
    table.put("late", 5 * S, 0)
    assert (table.get("late"), table.get("any other"), len(table)) == (5 * S, 5 * S, 1)


def test_a_key_from_a_shared_cell_keeps_its_time_when_it_finds_a_place() -> None:
    gcra = KeyedGcra(rate=1, burst=1, most_keys=1)
    assert passes(gcra, "over", 0.0)
    assert passes(gcra, "late", 0.5)
    assert passes(gcra, "over", 1.0)
    assert not passes(gcra, "late", 1.4)


@pytest.mark.parametrize("key", ["", "\ud800", "\udc80\udfff", "é" * 1000, "\0"])
def test_any_text_is_a_key(key: str) -> None:
    table = TatTable(1, tolerance_ns=0)
    table.put("over", 9 * S, 0)
    table.put(key, 5 * S, 0)
    assert table.get(key) == 5 * S


MILLION = """
from herdgate.core.gcra import KeyedGcra
from herdgate.memory import resident_bytes

gcra = KeyedGcra(rate=1, burst=60, most_keys=10_000)
before, refused = resident_bytes(), 0
for number in range(1_000_000):
    key, now = f"ip:{number >> 16}.{number >> 8 & 255}.{number & 255}.1", number / 100_000
    if gcra.wait(key, now):
        refused += 1
    else:
        gcra.charge(key, now)
print(refused, len(gcra), resident_bytes() - before)
"""


def test_million_keys_with_one_handshake_each_leave_a_bounded_table() -> None:
    """CASES 2.10: In a process of its own, so that the memory is the table's."""
    done = subprocess.run([sys.executable, "-c", MILLION], capture_output=True, text=True, check=True)
    refused, places, grown = map(int, done.stdout.split())
    assert refused == 0  # nobody is refused for being one of many
    assert places <= 10_000
    assert grown < 8 * MIB


def test_flood_of_keys_all_over_their_limit_is_bounded_and_shares_cells() -> None:
    """CASES 2.10."""
    gcra = KeyedGcra(rate=1 / 60, burst=1, most_keys=1_000)
    before = resident_bytes()

    passed = [key for key in fresh_keys(100_000) if passes(gcra, key, 0.0)]

    # Every place is taken by a key at its limit; the rest share 1,000 cells, and each of those takes one.
    assert len(gcra) == 1_000
    assert passed[:1_000] == list(fresh_keys(1_000))
    assert 1_900 < len(passed) <= 2_000
    assert resident_bytes() - before < 16 * MIB
    assert not any(passes(gcra, key, 1.0) for key in fresh_keys(100_000))


def test_flood_ends_with_the_penalty_of_its_keys() -> None:
    gcra = KeyedGcra(rate=1, burst=1, most_keys=100)
    for key in fresh_keys(10_000):
        passes(gcra, key, 0.0)
    assert not passes(gcra, "ip:192.0.2.1", 0.5)
    assert passes(gcra, "ip:192.0.2.1", 1.0)


@pytest.mark.parametrize("burst", [1, 5, 60])
def test_key_at_its_limit_stays_limited_while_ten_times_the_cap_of_others_arrive(burst: int) -> None:
    gcra = KeyedGcra(rate=1 / 60, burst=burst, most_keys=1_000)
    assert [passes(gcra, "busy", 0.0) for _ in range(burst + 1)] == [True] * burst + [False]

    for number, key in enumerate(fresh_keys(10_000)):
        now = number * 59.9 / 10_000
        passes(gcra, key, now)
        assert not passes(gcra, "busy", now)
        assert len(gcra) <= 1_000

    assert passes(gcra, "busy", 60.0)


keys = st.sampled_from([f"key {number}" for number in range(8)])
puts = st.lists(st.tuples(keys, st.integers(0, 3)), max_size=60)


@given(puts=puts, burst=st.integers(1, 3), places=st.integers(1, 6))
def test_no_key_over_its_limit_ever_passes_whatever_else_arrives(
    puts: list[tuple[str, int]], burst: int, places: int
) -> None:
    gcra = KeyedGcra(rate=1, burst=burst, most_keys=places)
    until: dict[str, float] = {}  # when the penalty of a key that was seen at its limit is over
    now = 0.0
    for key, quarters in puts:
        now += quarters / 4
        if passes(gcra, key, now):
            assert now >= until.get(key, 0.0)
            wait = gcra.wait(key, now)
            if wait:
                until[key] = now + wait
        assert len(gcra) <= places


def test_work_for_one_key_does_not_grow_with_the_table() -> None:
    """Only so many entries are moved to make room for one: the order of the others is what it was."""
    table = TatTable(1_000, tolerance_ns=0)
    order = [f"over {number}" for number in range(1_000)]
    random.Random(1).shuffle(order)
    for key in order:
        table.put(key, 9 * S, 0)

    table.put("new", 5 * S, 0)

    assert list(table._entries) == order[8:] + order[:8]
