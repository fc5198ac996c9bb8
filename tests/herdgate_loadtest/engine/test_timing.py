"""Every latency counts from the intended moment: neither a frozen server nor a stalled generator hides it.

The pattern is that of a load generator that waits with the server it measures (coordinated omission): a server frozen
for half of a run then shows up as a handful of slow answers among thousands of quick ones.
"""

import asyncio
import time

import pytest

from herdgate_loadtest.engine import Attempt, Crowd, CrowdConfig
from herdgate_loadtest.engine.record import percentile
from tests.herdgate_loadtest.engine.servers import Peer, eventually, serving

pytestmark = pytest.mark.xdist_group("timing")


def block(seconds: float) -> None:
    time.sleep(seconds)


async def test_waits_behind_a_frozen_server_count_from_the_intended_start() -> None:
    """200 clients at 100/s; the server answers nobody before half of them have come, which takes them 0.99 s."""
    arrived: list[Peer] = []

    def freeze(peer: Peer) -> None:
        arrived.append(peer)
        if len(arrived) == 100:
            for frozen in arrived:
                frozen.admit()
        elif len(arrived) > 100:
            peer.admit()

    attempts: list[Attempt] = []
    async with serving(freeze) as server:
        config = CrowdConfig(urls=(server.url,), clients={"obey": 200}, timeout_s=10.0)
        async with Crowd(config, attempts.append) as crowd:
            began = time.monotonic()
            await crowd.bring_up(rate=100)
            took_s = time.monotonic() - began
            record = crowd.record(rate=100, burst=1)
    waits = sorted(attempt.wait_s for attempt in attempts if attempt.wait_s is not None)
    assert len(waits) == 200
    assert 0.99 <= waits[-1] <= took_s
    assert percentile(waits, 75) >= 0.49
    assert record.behaviours["obey"].wait_max_s == pytest.approx(waits[-1])


async def test_arrivals_do_not_wait_for_the_server() -> None:
    async with serving(lambda _: None) as server:
        config = CrowdConfig(urls=(server.url,), clients={"obey": 50}, timeout_s=10.0)
        async with Crowd(config) as crowd:
            coming_up = asyncio.create_task(crowd.bring_up(rate=100))
            await eventually(lambda: len(server.handshakes) == 50)
            assert not coming_up.done()
            coming_up.cancel()
            await asyncio.wait([coming_up])


async def test_stalled_generator_makes_waits_longer_and_the_run_invalid() -> None:
    async with serving(Peer.admit) as server:
        config = CrowdConfig(urls=(server.url,), clients={"obey": 20}, spread_s=0.2)
        async with Crowd(config) as crowd:
            await crowd.bring_up()
            crowd.cut("reset")
            asyncio.get_running_loop().call_later(0.0, block, 0.8)
            assert await crowd.recover(deadline_s=5)
            record = crowd.record(rate=10, burst=1)
    assert record.behaviours["obey"].wait_max_s > 0.6
    assert record.t100_s > 0.8
    assert not record.valid
    assert "scheduler lag" in record.reasons[0]


async def test_denial_latency_counts_from_the_intended_moment_of_the_try() -> None:
    def deny_first(peer: Peer) -> None:
        if len(server.handshakes) > 1:
            peer.admit()
        else:
            peer.deny(retry_ms=10)

    async with serving(deny_first) as server, Crowd(CrowdConfig(urls=(server.url,), clients={"obey": 1})) as crowd:
        coming_up = asyncio.create_task(crowd.bring_up())
        await asyncio.sleep(0)  # the client is due now
        block(0.4)
        await coming_up
        record = crowd.record(rate=10, burst=1)
    assert record.denial_p99_ms is not None
    assert record.denial_p99_ms >= 350
