"""The curves of a simulation add up to what happened."""

import pytest

from herdgate_loadtest.simulate.scenario import WorkerKilled
from tests.herdgate_loadtest.simulate.scenarios import outcome_of


@pytest.mark.parametrize("rate", [2_000, 100, 1])
def test_curves_hold_every_try_and_every_admission(rate: float) -> None:
    outcome = outcome_of(1_000, rate)
    series = outcome.series(outcome.last_s)
    assert sum(series.arrivals) * series.step_s == pytest.approx(outcome.record.attempts_per_client * 1_000)
    assert sum(series.admissions) * series.step_s == pytest.approx(1_000)
    assert len(series.arrivals) == len(series.admissions) == len(series.waiting) <= 401


def test_waiting_falls_to_nobody_and_rises_with_a_loss() -> None:
    outcome = outcome_of(1_000, 100, failures=(WorkerKilled(30, 1, 1),))
    series = outcome.series(60)
    waiting = [series.waiting[int(at / series.step_s)] for at in (5, 15, 29.5, 30.1, 45)]
    assert waiting == [pytest.approx(400, abs=30), 0, 0, 1_000, 0]


def test_curves_go_on_beyond_the_last_event() -> None:
    series = outcome_of(100, 100).series(1_000)
    assert series.step_s * len(series.waiting) >= 1_000
    assert series.waiting[-1] == 0
