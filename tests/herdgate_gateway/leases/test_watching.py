"""What an observer has seen of the others: silence by its own clock, and whether an inc that owns something is dead."""

import itertools
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_gateway.leases.rows import WorkerRow
from herdgate_gateway.leases.watching import Verdict, Watch

ROW = WorkerRow("w", "a", None, "UP", 5, 3_000, "ws://w", 100, 0)
PATIENCE_S = 1.02 * 3.0


def test_who_is_seen_for_the_first_time_is_not_silent_however_old_its_beat_is() -> None:
    watch = Watch(3.0)
    watch.saw([ROW], 1_000.0)
    assert watch.silent(1_000.0 + PATIENCE_S - 0.01) == []
    assert watch.silent(1_000.0 + PATIENCE_S + 0.01) == [ROW]


@pytest.mark.parametrize("change", [{"hb": 6}, {"hb": 4}, {"inc": "b"}])
def test_beat_or_life_that_moved_begins_patience_anew(change: dict[str, Any]) -> None:
    watch = Watch(3.0)
    watch.saw([ROW], 0.0)
    watch.saw([replace(ROW, **change)], 3.0)
    assert watch.silent(3.0 + PATIENCE_S - 0.01) == []
    assert watch.silent(3.0 + PATIENCE_S + 0.01) == [replace(ROW, **change)]


@pytest.mark.parametrize("change", [{"load": 7}, {"st": "DRAINING"}, {"addr": "ws://other"}, {"capacity": 1}])
def test_nothing_but_a_beat_is_a_sign_of_life(change: dict[str, Any]) -> None:
    watch = Watch(3.0)
    watch.saw([ROW], 0.0)
    watch.saw([replace(ROW, **change)], 3.0)
    assert watch.silent(PATIENCE_S + 0.01) == [replace(ROW, **change)]


def test_patience_is_the_lease_of_the_watched_one() -> None:
    watch = Watch(3.0)
    watch.saw([replace(ROW, lease_ms=30_000)], 0.0)
    assert watch.silent(30.0) == []
    assert watch.silent(30.7) != []


def test_row_that_does_not_say_its_lease_is_given_the_observers() -> None:
    watch = Watch(9.0)
    watch.saw([replace(ROW, lease_ms=0)], 0.0)
    assert watch.silent(9.1) == []
    assert watch.silent(9.2) != []


def test_the_dead_are_not_silent() -> None:
    watch = Watch(3.0)
    watch.saw([replace(ROW, st="DEAD")], 0.0)
    assert watch.silent(100.0) == []


def test_who_was_away_for_one_look_is_new() -> None:
    watch = Watch(3.0)
    watch.saw([ROW], 0.0)
    watch.saw([], 2.0)
    assert watch.rows == {}
    watch.saw([ROW], 4.0)
    assert watch.silent(4.0 + PATIENCE_S - 0.01) == []


def test_latest_rows_are_known_by_name() -> None:
    watch = Watch(3.0)
    watch.saw([ROW, replace(ROW, worker="v", inc="c")], 0.0)
    watch.saw([replace(ROW, hb=9)], 1.0)
    assert watch.rows == {"w": replace(ROW, hb=9)}


def test_patience_is_over_when_the_first_one_is_silent() -> None:
    watch = Watch(3.0)
    assert watch.patience_s(0.0, but="me") == inf
    watch.saw([replace(ROW, worker="v", lease_ms=30_000), replace(ROW, worker="u", st="DEAD")], 0.0)
    assert watch.patience_s(0.0, but="me") == pytest.approx(30.6)
    watch.saw([replace(ROW, worker="v", lease_ms=30_000), ROW], 1.0)
    assert watch.patience_s(2.0, but="me") == pytest.approx(PATIENCE_S - 1.0)
    assert watch.silent(2.0 + watch.patience_s(2.0, but="me") + 0.01) == [ROW]
    assert watch.patience_s(20.0, but="me") == pytest.approx(10.6), "who is silent already may be declared dead now"
    assert watch.patience_s(20.0, but=replace(ROW, worker="v").inc) == inf


@pytest.mark.parametrize(
    ("row", "at_once", "later"),
    [
        (ROW, "alive", "alive"),
        (replace(ROW, st="DRAINING"), "alive", "alive"),
        (replace(ROW, st="DEAD"), "dead", "dead"),
        (replace(ROW, inc="b", prev="a"), "dead", "dead"),
        (replace(ROW, inc="b", prev="a", st="DEAD"), "dead", "dead"),
        (replace(ROW, inc="b", prev=None), "unclear", "dead"),
        (replace(ROW, inc="c", prev="b"), "unclear", "dead"),
        (replace(ROW, inc="c", prev="b", st="DEAD"), "unclear", "dead"),
        (None, "unclear", "vanished"),
    ],
)
def test_verdict_of_an_inc(row: WorkerRow | None, at_once: Verdict, later: Verdict) -> None:
    watch = Watch(3.0)
    assert watch.judge("a", row, 50.0) == at_once
    assert watch.judge("a", row, 50.0 + PATIENCE_S - 0.01) == at_once
    assert watch.judge("a", row, 50.0 + PATIENCE_S + 0.01) == later


def test_silence_alone_is_no_death() -> None:
    watch = Watch(3.0)
    watch.saw([ROW], 0.0)
    assert watch.silent(100.0) == [ROW]
    assert watch.judge("a", ROW, 100.0) == "alive", "it has to be declared so first"


def test_row_that_was_seen_again_begins_the_wait_anew() -> None:
    watch = Watch(3.0)
    watch.judge("a", None, 0.0)
    watch.judge("a", ROW, 2.0)
    assert watch.judge("a", None, 4.0) == "unclear"
    assert watch.judge("a", None, 4.0 + PATIENCE_S - 0.01) == "unclear"
    assert watch.judge("a", None, 4.0 + PATIENCE_S + 0.01) == "vanished"


def test_inc_that_was_forgotten_is_waited_for_anew() -> None:
    watch = Watch(3.0)
    watch.judge("a", None, 0.0)
    watch.forget("a")
    assert watch.judge("a", None, 100.0) == "unclear"
    watch.forget("never heard of")


def test_wait_for_a_row_with_another_inc_is_the_longer_lease_if_that_one_is_dead() -> None:
    """Nobody knows the lease of the inc that is gone; the living one says its own."""
    watch = Watch(3.0)
    tombstone = WorkerRow("w", "b", None, "DEAD", 0, 0, "", 0, 0)
    assert watch.judge("a", tombstone, 0.0) == "unclear"
    assert watch.judge("a", tombstone, PATIENCE_S - 0.01) == "unclear"
    assert watch.judge("a", tombstone, PATIENCE_S + 0.01) == "dead"
    assert watch.judge("c", replace(ROW, inc="b", lease_ms=30_000), 100.0) == "unclear"
    assert watch.judge("c", replace(ROW, inc="b", lease_ms=30_000), 130.0) == "unclear"
    assert watch.judge("c", replace(ROW, inc="b", lease_ms=30_000), 131.0) == "dead"


LOOKS = st.lists(
    st.tuples(st.floats(0.01, 3.0), st.lists(st.tuples(st.sampled_from("uvw"), st.integers(0, 2)), max_size=3)),
    min_size=1,
    max_size=20,
)


@given(LOOKS)
def test_whoever_is_silent_was_seen_unmoved_for_longer_than_its_patience(
    looks: list[tuple[float, list[tuple[str, int]]]],
) -> None:
    watch, now = Watch(3.0), 0.0
    history: list[tuple[float, dict[str, int]]] = []
    for pause, seen in looks:
        now += pause
        beats = dict(seen)
        watch.saw([replace(ROW, worker=worker, hb=hb) for worker, hb in beats.items()], now)
        history.append((now, beats))
        expected = {worker for worker in beats if now - _unmoved_since(history, worker) > PATIENCE_S}
        assert {row.worker for row in watch.silent(now)} == expected


def _unmoved_since(history: list[tuple[float, dict[str, int]]], worker: str) -> float:
    latest = history[-1][1][worker]
    same = itertools.takewhile(lambda look: look[1].get(worker) == latest, reversed(history))
    return min(at for at, _ in same)
