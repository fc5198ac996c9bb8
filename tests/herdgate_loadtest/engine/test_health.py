"""The generator's watch over itself."""

import asyncio
import time

import pytest

from herdgate_loadtest.engine.health import Health
from tests.herdgate_loadtest.engine.servers import eventually

pytestmark = pytest.mark.xdist_group("timing")


def block(seconds: float) -> None:
    time.sleep(seconds)


def samples(health: Health) -> int:
    return len(health._lags)


async def test_idle_generator_is_healthy() -> None:
    health = Health()
    health.start(asyncio.get_running_loop())
    await eventually(lambda: samples(health) >= 10)
    health.stop()
    taken = samples(health)
    await asyncio.sleep(0.05)
    assert samples(health) == taken, "no samples after the end"
    assert health.lag_p99_s >= 0


async def test_one_long_block_counts_as_all_the_samples_it_swallowed() -> None:
    health = Health()
    health.start(asyncio.get_running_loop())
    await eventually(lambda: samples(health) >= 5)
    block(0.5)
    await eventually(lambda: samples(health) >= 25)
    health.stop()
    assert health.lag_p99_s >= 0.4
    (reason,) = health.reasons()
    assert "scheduler lag p99 was" in reason
    assert "100 is too much" in reason


async def test_intended_block_is_excused() -> None:
    health = Health()
    health.start(asyncio.get_running_loop())
    block(0.5)
    health.excuse()
    await eventually(lambda: samples(health) >= 5)
    health.stop()
    assert health.lag_p99_s < 0.4


def test_a_single_fault_is_one_try() -> None:
    health = Health()
    health.faults["EMFILE"] += 1
    assert health.reasons() == ["the generator ran out: EMFILE on 1 try"]


@pytest.mark.parametrize("fault", ["EMFILE", "EADDRNOTAVAIL"])
def test_running_out_makes_a_run_invalid(fault: str) -> None:
    health = Health()
    assert health.reasons() == []
    health.faults[fault] += 3
    assert health.reasons() == [f"the generator ran out: {fault} on 3 tries"]


def test_late_dials_are_measured_but_forgiven() -> None:
    health = Health()
    for late_ms in range(1, 101):
        health.dialled(late_ms / 1e3)
    assert health.dial_lag_p95_s == pytest.approx(0.095)
    assert health.reasons() == []
