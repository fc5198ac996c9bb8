"""What load generators did to others, replayed on this one. Times are scaled where a case lasts long."""

import asyncio
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from herdgate_loadtest.engine import Attempt, Crowd, CrowdConfig
from herdgate_loadtest.engine.preflight import check_limits, read_limits
from herdgate_loadtest.engine.record import percentile
from tests.herdgate_loadtest.engine.servers import Peer, eventually, serving
from tests.herdgate_loadtest.herd.test_command import HERDGATE, herd, only_lag
from tests.servers import uvicorn

pytestmark = pytest.mark.xdist_group("timing")

FREEZE_S = 3.0


def says_so(record: dict[str, Any]) -> bool:
    """A machine too busy for the case has the run marked invalid for that, and nothing else is wrong with it."""
    return not record["valid"] and only_lag(record)


async def test_case_8_3_a_frozen_server_shows_in_every_wait_behind_it() -> None:
    """100 a second come to a server that is stopped for half of the time; times scaled by five."""
    attempts: list[Attempt] = []
    with uvicorn("tests.apps:alone") as server:
        url = f"ws://127.0.0.1:{server.port}/echo"
        config = CrowdConfig(urls=(url,), clients={"obey": int(200 * FREEZE_S)}, timeout_s=60)
        async with Crowd(config, attempts.append) as crowd:
            coming = asyncio.create_task(crowd.bring_up(rate=100))
            await eventually(lambda: len(attempts) > 25 * FREEZE_S, within_s=20)
            os.kill(server.pid, signal.SIGSTOP)
            stopped_at = time.monotonic()
            try:
                await asyncio.sleep(FREEZE_S)
            finally:
                os.kill(server.pid, signal.SIGCONT)
            frozen_s = time.monotonic() - stopped_at
            await coming
    waits = sorted(attempt.wait_s for attempt in attempts if attempt.wait_s is not None)
    assert len(waits) == 200 * FREEZE_S
    # Those who come while it stands still wait from 0 to all of it, and they are half of all.
    assert percentile(waits, 75) == pytest.approx(frozen_s / 2, abs=0.2 * frozen_s)
    assert waits[-1] == pytest.approx(frozen_s, abs=0.2 * frozen_s)


async def test_case_8_5_two_thousand_that_listen_leave_the_generator_idle_and_go_at_once() -> None:
    async with serving(Peer.admit) as server:
        options = (server.url, "--clients", "2000", "--rate", "1000", "--json")
        _, (record,), _ = await herd(*options, "--hold", "2")
        (generator,) = record["generator"]
        assert generator["lag_p99_ms"] < 100 or says_so(record)
        process = await asyncio.create_subprocess_exec(*HERDGATE, *options, "--hold", "60")
        await eventually(lambda: len(server.peers) == 2000, within_s=40)
        process.terminate()
        began = time.monotonic()
        await eventually(lambda: not server.peers, within_s=20)
        await asyncio.wait_for(process.wait(), 20)
        assert time.monotonic() - began < 5


async def test_case_8_7_four_processes_dial_at_one_moment_and_say_how_far_apart_they_were(tmp_path: Path) -> None:
    clients, report, dials = 200, tmp_path / "herd.html", list[float]()

    def note(peer: Peer) -> None:
        dials.append(peer.at)
        peer.admit()

    async with serving(note) as server:
        _, (record,), _ = await herd(
            *(server.url, "--clients", str(clients), "--rate", "200", "--processes", "4", "--spread", "0"),
            *("--report", str(report)),
        )
    first, *_ = after_the_cut = sorted(dials)[clients:]
    assert len(after_the_cut) == clients
    together = sum(at - first <= 0.1 for at in after_the_cut)
    assert together >= 0.95 * clients or says_so(record)
    assert record["processes"] == 4
    assert record["skew_ms"] <= 100 or says_so(record)
    assert "4 processes, cut within" in report.read_text()


async def test_case_8_9_two_runs_one_after_the_other_come_to_the_same() -> None:
    backs: list[float] = []
    with uvicorn("tests.apps:alone", limits={"rate": 50, "burst": 1}) as server:
        for _ in range(2):
            url = f"ws://127.0.0.1:{server.port}/echo"
            _, (record,), err = await herd(url, "--clients", "150", "--rate", "50", "--burst", "1", "--cut", "close")
            assert only_lag(record), err
            backs.append(record["t100_s"])
            assert read_limits().time_wait > 0, "what the run has left is seen"
    assert backs[1] == pytest.approx(backs[0], rel=0.1)
    limits = replace(read_limits(), descriptors=100_000, most_descriptors=100_000, reuse=0)
    (warning,) = check_limits(limits.ports, limits)
    assert warning.startswith(f"{limits.time_wait:,} connection")
    assert "wait a minute or add sources" in warning
