"""The demo server's process, watched by its parent."""

import math
import time

import pytest

from herdgate_loadtest.demo.rounds import Plan, play_round
from herdgate_loadtest.demo.server import run_server
from herdgate_loadtest.engine import Crowd
from herdgate_loadtest.errors import CrowdError


async def look_away(phase: str, crowd: Crowd) -> None:
    """Watch nothing."""


async def test_server_that_cannot_start_ends_the_round_with_its_last_words(capfd: pytest.CaptureFixture[str]) -> None:
    with (
        run_server(math.nan) as server,
        pytest.raises(
            CrowdError, match=r"ended with exit code 1 \(.*rate: got nan; .*\): start the demo again$"
        ) as told,
    ):
        await play_round(Plan(herd=5, rate=1.0), server, look_away)

    assert "\n" not in str(told.value)
    assert capfd.readouterr() == ("", "")


async def test_server_answers_while_it_runs_and_ends_with_its_block() -> None:
    with run_server(10.0) as server:
        assert (await server.stats(time.monotonic()))["admitted"] == 0
        assert server.process.poll() is None
    assert server.process.poll() is not None
