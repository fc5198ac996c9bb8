"""When shards are looked at, and what has to change then."""

import random
from collections.abc import Mapping
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_gateway.connections.limits import canonical
from herdgate_gateway.leases.rows import ConnectionRow, Want
from herdgate_gateway.worker_kit.backoff import Backoff
from herdgate_gateway.worker_kit.wants import EVERY_S, Agenda, Changes, Known, changes


def test_nothing_is_due_of_nothing() -> None:
    agenda = Agenda(lambda: 0.5)
    assert agenda.wait_s(5.0) == inf
    assert agenda.take_due(5.0, 10) == []


def test_what_is_due_longest_comes_first_and_so_many() -> None:
    agenda = Agenda(lambda: 0.5)
    for shard, at in ((1, 3.0), (2, 1.0), (3, 2.0), (4, 9.0)):
        agenda.look(shard, at)
    assert agenda.take_due(5.0, 2) == [2, 3]
    assert agenda.wait_s(5.0) == 0.0
    assert agenda.take_due(5.0, 2) == [1]
    assert agenda.wait_s(5.0) == 4.0


def test_news_make_it_sooner_and_never_later() -> None:
    agenda = Agenda(lambda: 0.5)
    agenda.looked(1, 0.0)
    agenda.look(1, 2.0)
    agenda.look(1, 7.0)
    assert agenda.wait_s(0.0) == 2.0


def test_news_that_come_while_it_is_read_outlive_the_read() -> None:
    agenda = Agenda(lambda: 0.5)
    agenda.look(1, 0.0)
    assert agenda.take_due(0.0, 1) == [1]
    agenda.look(1, 0.1)
    agenda.looked(1, 0.2)
    assert agenda.take_due(0.2, 1) == [1]


def test_what_is_not_ours_is_off() -> None:
    agenda = Agenda(lambda: 0.5)
    agenda.look(1, 0.0)
    agenda.drop(1)
    agenda.drop(2)
    assert agenda.wait_s(0.0) == inf


def test_each_shard_is_looked_at_every_minute_and_they_drift_apart() -> None:
    agenda = Agenda(random.Random(1).random)
    for shard in range(1_024):
        agenda.looked(shard, 0.0)
    seconds = [len(agenda.take_due(float(now), 1_024)) for now in range(1, int(EVERY_S) + 1)]
    assert sum(seconds) == 1_024
    assert max(seconds) < 60


def row(name: str, want: Want = "STARTED", attrs: Mapping[str, Any] | None = None) -> ConnectionRow:
    return ConnectionRow(name, want, None, None, attrs or {})


NOTHING = Changes([], set(), set(), is_unclear=False)
RUNS = Known(5.0, canonical({}))


@pytest.mark.parametrize(
    ("rows", "running", "needed"),
    [
        ([], {}, NOTHING),
        ([row("a")], {}, Changes(["a"], set(), set(), is_unclear=False)),
        ([row("a", "STOPPED")], {}, NOTHING),
        ([row("a")], {"a": RUNS}, NOTHING),
        ([row("a")], {"a": Known()}, NOTHING),
        ([row("a", "STOPPED")], {"a": RUNS}, Changes([], {"a"}, set(), is_unclear=False)),
        ([], {"a": RUNS}, Changes([], {"a"}, set(), is_unclear=False)),
        ([row("a", attrs={"n": 1})], {"a": RUNS}, Changes([], set(), {"a"}, is_unclear=False)),
        ([row("a", attrs={"n": True})], {"a": Known(5.0, canonical({"n": 1}))}, Changes([], set(), {"a"}, False)),
        ([row("a", attrs={"n": 1, "m": 2})], {"a": Known(5.0, canonical({"m": 2, "n": 1}))}, NOTHING),
        ([row("a", "STOPPED")], {"a": Known()}, Changes([], set(), set(), is_unclear=True)),
        ([row("a", "STOPPED")], {"a": Known(10.1, "{}")}, Changes([], set(), set(), is_unclear=True)),
        ([row("a", attrs={"n": 1})], {"a": Known(10.1, "{}")}, Changes([], set(), set(), is_unclear=True)),
        ([row("a", "STOPPED"), row("b")], {"a": Known(10.0, "{}")}, Changes(["b"], {"a"}, set(), is_unclear=False)),
    ],
    ids=str,
)
def test_changes(rows: list[ConnectionRow], running: dict[str, Known], needed: Changes) -> None:
    assert changes(rows, running, began=10.0) == needed


@given(st.lists(st.floats(0, 59.9), max_size=40), st.integers())
def test_short_runs_wait_longer_each_time_within_bounds(runs: list[float], seed: int) -> None:
    backoff = Backoff(random.Random(seed).random)
    for number, ran_s in enumerate(runs):
        assert 0.5 <= backoff.after(ran_s) <= min(60.0, 2.0**number)


def test_a_long_run_begins_anew() -> None:
    backoff = Backoff(lambda: 1.0)
    assert [backoff.after(0) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert backoff.after(60.0) == 1.0
    assert backoff.after(0.0) == 2.0


def test_waits_are_jittered() -> None:
    assert Backoff(lambda: 0.0).after(0) == 0.5
    backoff = Backoff(lambda: 0.5)
    backoff.after(0)
    assert backoff.after(0) == 1.25
