"""Where shards ought to be: the same for everybody, bounded, by capacity, and hardly moved by who comes or goes."""

from collections import Counter
from math import ceil
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herdgate_gateway.leases.placement import Placement
from herdgate_gateway.leases.rows import SHARDS

NAMES = st.text(min_size=1, max_size=8)
FEW_SHARDS = 128
FLEETS = st.dictionaries(NAMES, st.integers(1, 500), min_size=1, max_size=10)
ALIKE = st.sets(NAMES, min_size=1, max_size=10)
CASCADE = 1 / 8
"""Of all shards: those that move between others, as their room changes with each that comes or goes."""


def firsts(placement: Placement, shards: int) -> list[str]:
    return [placement.ranked(shard)[0] for shard in range(shards)]


def moved(before: Placement, after: Placement, shards: int) -> list[int]:
    return [shard for shard in range(shards) if before.ranked(shard)[0] != after.ranked(shard)[0]]


def test_nobody_ranks_for_anything_if_there_is_nobody() -> None:
    placement = Placement({})
    assert placement.ranked(0) == placement.ranked(SHARDS - 1) == []
    assert placement.first_for("w") == placement.at_rank("w", 1) == []


def test_one_worker_ranks_first_for_all() -> None:
    placement = Placement({"w": 100})
    assert placement.first_for("w") == list(range(SHARDS))
    assert placement.at_rank("w", 1) == []


@settings(max_examples=50)
@given(FLEETS, st.randoms(use_true_random=False))
def test_order_in_which_workers_are_named_does_not_matter(capacities: dict[str, int], rng: Random) -> None:
    names = list(capacities)
    rng.shuffle(names)
    here, there = Placement(capacities, FEW_SHARDS), Placement({name: capacities[name] for name in names}, FEW_SHARDS)
    assert all(here.ranked(shard) == there.ranked(shard) for shard in range(FEW_SHARDS))


def test_ranks_are_the_same_in_every_process_and_release() -> None:
    """Workers of two releases must agree: these were computed once, and must never change."""
    placement = Placement({"a": 100, "b": 100, "c": 200}, 16)
    assert "".join(firsts(placement, 16)) == "cacbcacbccccccab"


@settings(max_examples=50)
@given(FLEETS)
def test_every_worker_has_one_rank_for_every_shard(capacities: dict[str, int]) -> None:
    placement = Placement(capacities, FEW_SHARDS)
    for shard in range(FEW_SHARDS):
        assert sorted(placement.ranked(shard)) == sorted(capacities)
    for rank in range(len(capacities)):
        by_worker = [shard for worker in capacities for shard in placement.at_rank(worker, rank)]
        assert sorted(by_worker) == list(range(FEW_SHARDS))
    assert all(placement.first_for(worker) == placement.at_rank(worker, 0) for worker in capacities)


@settings(max_examples=50)
@given(FLEETS, st.sampled_from([1, 7, FEW_SHARDS]))
def test_nobody_ranks_first_for_more_than_its_part_and_a_quarter(capacities: dict[str, int], shards: int) -> None:
    counts, total = Counter(firsts(Placement(capacities, shards), shards)), sum(capacities.values())
    for worker, capacity in capacities.items():
        assert counts[worker] <= ceil(1.25 * shards * capacity / total)


def test_parts_follow_capacity() -> None:
    placement = Placement({"small": 100, "large": 300})
    assert len(placement.first_for("large")) == pytest.approx(SHARDS * 3 / 4, rel=0.1)
    assert len(placement.first_for("small")) == pytest.approx(SHARDS / 4, rel=0.25)


@pytest.mark.parametrize("nothing", [0, -5])
def test_capacity_of_nothing_counts_as_one(nothing: int) -> None:
    here, there = Placement({"v": nothing, "w": 2}, 64), Placement({"v": 1, "w": 2}, 64)
    assert firsts(here, 64) == firsts(there, 64)


@settings(max_examples=50)
@given(ALIKE, NAMES)
def test_who_comes_or_goes_moves_hardly_more_than_its_own(names: set[str], newcomer: str) -> None:
    names.discard(newcomer)
    without = Placement(dict.fromkeys(names, 100), SHARDS)
    with_it = Placement(dict.fromkeys({*names, newcomer}, 100), SHARDS)
    if names:
        own = with_it.first_for(newcomer)
        moves = moved(without, with_it, SHARDS)
        assert set(own) <= set(moves)
        assert len(moves) <= len(own) + CASCADE * SHARDS
        assert len(own) <= ceil(1.25 * SHARDS / (len(names) + 1))


def test_second_ranks_of_one_that_goes_are_spread_over_all_others() -> None:
    """So its death costs each of them its part of the work."""
    fleet = Placement(dict.fromkeys("abcde", 100))
    heirs = Counter(fleet.ranked(shard)[1] for shard in fleet.first_for("a"))
    assert set(heirs) == set("bcde")
    assert max(heirs.values()) < 2 * len(fleet.first_for("a")) / 4


def test_names_that_are_no_unicode_have_ranks() -> None:
    assert len(Placement({"\udcff": 1, "w": 1}, 64).ranked(0)) == 2
