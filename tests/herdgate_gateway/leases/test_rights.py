"""A right is over before anybody may declare its owner dead, whatever the clocks and the network do."""

from itertools import accumulate
from math import inf
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_gateway.leases.rights import FENCE, RIGHT, Right
from herdgate_gateway.leases.rows import WorkerRow
from herdgate_gateway.leases.watching import Watch


class DriftingClock(NamedTuple):
    """Of a machine: what it shows at moment 0, and its pace."""

    offset_s: float
    pace: float

    def at(self, moment: float) -> float:
        """What it shows then."""
        return self.offset_s + moment * self.pace


PACES = st.floats(0.94, 1.06) | st.sampled_from([0.94, 1 - 500e-6, 1.0, 1 + 500e-6, 1.06])
"""Of clocks: up to 6 % off, and what real ones are off."""

CLOCKS = st.builds(DriftingClock, st.floats(-30.0, 30.0), PACES)
TRAVELS = st.floats(0.0, 20.0)


def test_right_that_was_never_renewed_does_not_run() -> None:
    right = Right(3.0)
    assert right.ends_at == -inf
    assert not right.runs(0.0)
    assert not right.is_lost


def test_right_counts_from_the_sending_of_the_beat() -> None:
    right = Right(10.0)
    right.renew(100.0)
    assert right.ends_at == pytest.approx(109.0)
    assert right.runs(108.99)
    assert not right.runs(109.0)


def test_answer_of_an_earlier_beat_shortens_nothing() -> None:
    right = Right(10.0)
    right.renew(100.0)
    right.renew(95.0)
    assert right.ends_at == pytest.approx(109.0)


def test_right_that_was_lost_never_comes_back() -> None:
    right = Right(10.0)
    right.renew(100.0)
    right.lose()
    right.renew(101.0)
    assert right.is_lost
    assert not right.runs(101.0)


@pytest.mark.parametrize("off", [0.0, 0.0005, 0.06])
def test_fractions_leave_room_for_clocks_that_are_off(off: float) -> None:
    assert RIGHT * (1 + off) <= FENCE * (1 - off)


def test_fractions_leave_no_room_for_clocks_that_are_off_by_more_than_the_documented_part() -> None:
    assert RIGHT * 1.07 > FENCE * 0.93


@given(CLOCKS, CLOCKS, st.floats(0.5, 60.0), TRAVELS, TRAVELS)
def test_right_is_over_when_patience_is(
    owner: DriftingClock, watcher: DriftingClock, lease_s: float, until_done: float, until_seen: float
) -> None:
    """The owner sends a beat at moment 0; it is carried out, then an observer sees it, and after that no other one."""
    right, watch = Right(lease_s), Watch(lease_s)
    row = WorkerRow("w", "inc", None, "UP", 1, int(lease_s * 1_000) + 1, "", 1, 0)
    right.renew(owner.at(0.0))
    seen_at = until_done + until_seen
    watch.saw([row], watcher.at(seen_at))

    declared_at = seen_at + (FENCE * row.lease_ms / 1_000 + 1e-6) / watcher.pace
    assert watch.silent(watcher.at(declared_at)) == [row]
    assert not right.runs(owner.at(declared_at))


@given(CLOCKS, CLOCKS, st.lists(st.floats(0.0, 2.0), max_size=10), st.floats(0.05, 2.0))
def test_nobody_whose_right_runs_is_declared_dead_at_any_look(
    owner: DriftingClock, watcher: DriftingClock, pauses: list[float], look_s: float
) -> None:
    """Beats at irregular moments, looks at regular ones: whoever is silent has no right at that very moment."""
    right, watch, now, was_silent = Right(3.0), Watch(3.0), 0.0, False
    beats = list(accumulate(pauses))
    while now < sum(pauses) + 10.0:
        done = [at for at in beats if at <= now]
        for at in done[-1:]:
            right.renew(owner.at(at))
        watch.saw([WorkerRow("w", "inc", None, "UP", len(done), 3_000, "", 1, 0)], watcher.at(now))
        was_silent = bool(watch.silent(watcher.at(now)))
        assert not (was_silent and right.runs(owner.at(now)))
        now += look_s
    assert was_silent, "who has stopped is found out"
