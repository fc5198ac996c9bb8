"""What reconnecting clients did to others, replayed on ours."""

import random
from statistics import mean

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from herdgate_client.pace import Pace
from herdgate_client.told import NOTHING
from tests.herdgate_client.scripted import OPEN, closing, giving
from tests.herdgate_client.test_node import hasty, of

FLAPPING_S = 600
DROPPED_WITHIN_S = 5.0


def tries_of(pace: Pace, rng: random.Random, *, resets_on_open: bool) -> int:
    """Of one client whose every socket opens and is dropped soon after, in ten minutes."""
    now, failures, tries = 0.0, 0, 0
    while now < FLAPPING_S:
        tries += 1
        lasted_s = rng.uniform(0, DROPPED_WITHIN_S)
        failures = 0 if resets_on_open or lasted_s >= pace.stable_s else failures
        now += lasted_s + pace.wait_s(NOTHING, failures, rng)
        failures += 1
    return tries


def test_case_7_3_a_thousand_flapping_clients_stay_below_what_their_cap_allows() -> None:
    rng, pace = random.Random(73), Pace(cap_s=30, stable_s=30)
    tries = [tries_of(pace, rng, resets_on_open=False) for _ in range(1_000)]
    assert mean(tries) <= FLAPPING_S / (pace.cap_s / 2)
    assert max(tries) <= 2 * FLAPPING_S / (pace.cap_s / 2)
    naive = [tries_of(pace, rng, resets_on_open=True) for _ in range(1_000)]
    assert mean(naive) > 4 * mean(tries), "a backoff that an open ends is none"


@pytest.mark.node
async def test_case_7_9_a_loss_and_a_send_in_one_moment_make_one_dial() -> None:
    """The test's script sends on every loss. A watchdog has nothing to call; tests/browser has what a page hears."""
    async with giving(closing(1011), OPEN) as server:
        seen = await hasty(server.url, {"type": "open", "count": 2})
        assert len(server.visits) == 2
    (lost,) = of("retry", seen)
    assert lost["thrown"] == "InvalidStateError", "sending starts nothing"


async def test_the_script_for_pages_is_served_out_of_the_package() -> None:
    app = Starlette(routes=[Mount("/herdgate", StaticFiles(packages=[("herdgate_client", "js")]))])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://page") as browser:
        answer = await browser.get("/herdgate/herdgate.js")
    assert answer.status_code == 200
    assert "globalThis.HerdgateWebSocket" in answer.text
