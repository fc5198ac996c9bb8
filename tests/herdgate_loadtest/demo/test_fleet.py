"""The demo's fleet, watched by its parent: processes, settings, counts."""

import asyncio
import math
import os
import re
import sys
import time
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from herdgate_loadtest.demo.fleet import run_fleet
from herdgate_loadtest.demo.rounds import Plan, play_round
from herdgate_loadtest.engine import Crowd
from herdgate_loadtest.errors import CrowdError
from herdgate_loadtest.gate_counts import GateCounts
from tests.wire import eventually


async def look_away(phase: str, crowd: Crowd) -> None:
    """Watch nothing."""


async def test_gate_and_workers_count_the_same_admissions() -> None:
    began = time.monotonic()
    with run_fleet(1000.0, 1) as fleet:
        async with connect(fleet.gateway.url), connect(fleet.gateway.url):
            assert await fleet.gateway.counts() == GateCounts(admitted=2, denied=0, permits=2)
            assert len(await fleet.admissions(began)) == 2
            assert await fleet.admissions(time.monotonic()) == []

        async def left() -> bool:
            return (await fleet.gateway.counts()).permits == 0

        await eventually(left, "the permits are back")


async def test_gateway_spreads_the_crowd_over_both_workers() -> None:
    with run_fleet(1000.0, 1) as fleet:
        for _ in range(2):
            async with connect(fleet.gateway.url):
                pass
        told = [await worker.ask("/stats?since=0") for worker in fleet.workers]

    assert [len(stats["admitted_at"]) for stats in told] == [1, 1]


async def test_what_one_says_comes_back_through_the_gateway() -> None:
    with run_fleet(10.0, 1) as fleet:
        async with connect(fleet.gateway.url) as client:
            await client.send("hello")
            assert await asyncio.wait_for(client.recv(), 10) == "hello"


async def test_settings_of_the_environment_do_not_reach_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERDGATE_RATE", "nothing")
    with run_fleet(10.0, 1) as fleet:
        assert (await fleet.gateway.process.ask("/status.json"))["gates"]["default"]["rate"] == 10


async def test_gateway_that_cannot_start_ends_the_round_with_its_own_line(capfd: pytest.CaptureFixture[str]) -> None:
    with run_fleet(math.nan, 1) as fleet, pytest.raises(CrowdError) as told:
        await play_round(Plan(herd=5, rate=1.0), fleet, look_away)

    assert re.fullmatch(r"the gateway cannot start: rate: got nan; [^\n]*", str(told.value))
    assert capfd.readouterr() == ("", "")


async def test_without_the_gateway_s_packages_the_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prometheus_client.py").write_text("raise ModuleNotFoundError(name='prometheus_client')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    with run_fleet(10.0, 1) as fleet, pytest.raises(CrowdError) as told:
        await play_round(Plan(herd=5, rate=10.0), fleet, look_away)

    install = "pip install 'herdgate[gateway]'"
    assert str(told.value) == f"the gateway cannot start: serve needs more packages: {install}"
