"""The process that holds sockets: orders in, events out."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from herdgate_loadtest.engine import CrowdConfig
from herdgate_loadtest.herd.plan import Share
from tests.herdgate_loadtest.engine.servers import Peer, eventually, serving

SWARM = (sys.executable, "-m", "herdgate_loadtest.herd.swarm")


class Swarm:
    """A running one."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.events: list[dict[str, Any]] = []

    def order(self, **order: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")

    async def event(self, wanted: str) -> dict[str, Any]:
        """Read up to the next event of that name."""
        assert self.process.stdout is not None
        while line := await asyncio.wait_for(self.process.stdout.readline(), 30):
            self.events.append(json.loads(line))
            if self.events[-1]["event"] == wanted:
                return self.events[-1]
        raise AssertionError(f"it ended without {wanted}: {self.events[-3:]}")


@asynccontextmanager
async def swarm() -> AsyncIterator[Swarm]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*SWARM, stdin=pipe, stdout=pipe, limit=1 << 24)
    try:
        yield Swarm(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def up(url: str, clients: int, **settings: Any) -> dict[str, Any]:
    config = CrowdConfig(urls=(url,), clients={"obey": clients}, spread_s=0.0, **settings)
    return Share(config, None, 0.0).as_order(time.monotonic(), 10.0)


async def test_it_comes_up_cuts_at_the_moment_and_tells_what_was_recorded() -> None:
    async with serving(Peer.admit) as server, swarm() as it:
        await it.event("ready")
        it.order(**up(server.url, 5))
        await it.event("up")
        at = time.monotonic() + 0.5
        it.order(order="cut", at=at, how="reset")
        cut = await it.event("cut")
        assert at <= cut["began"] < at + 0.25
        await eventually(lambda: len(server.handshakes) == 10)
        while not (await it.event("snapshot"))["is_back"]:
            pass
        it.order(order="tell")
        told = await it.event("told")
        assert len(told["recorded"]["outcomes"]) == 5
        assert told["recorded"]["began"] == cut["began"]
        assert told["answers"] == {"101": 5}
        assert sum(times for outcome, _, times in told["series"] if outcome == "admitted") == 5
        tries = [entry for event in it.events if event["event"] == "attempts" for entry in event["entries"]]
        assert len(tries) == 10
        it.order(order="leave")
        await it.event("left")
        assert await it.process.wait() == 0
        await eventually(lambda: not server.peers)


async def test_end_of_its_orders_means_to_leave_even_while_it_comes_up() -> None:
    def never(peer: Peer) -> None:
        peer.deny(retry_ms=60_000)

    async with serving(never) as server, swarm() as it:
        await it.event("ready")
        it.order(**up(server.url, 5))
        await eventually(lambda: len(server.handshakes) == 5, within_s=15)
        assert it.process.stdin is not None
        it.process.stdin.close()
        assert await asyncio.wait_for(it.process.wait(), 15) == 0


@pytest.mark.parametrize(("clients", "code", "words"), [(10**6, 2, "1,000,000 clients will not do"), (3, 1, "nobody")])
async def test_what_goes_wrong_is_its_last_event(clients: int, code: int, words: str) -> None:
    async with serving(Peer.admit) as server:
        url = server.url
    async with swarm() as it:
        await it.event("ready")
        it.order(**up(url, clients))
        error = await it.event("error")
        assert error["code"] == code
        assert words in error["message"]
        assert await it.process.wait() == code


async def test_nobody_who_reads_it_does_not_hold_it_up() -> None:
    """Its events would fill any pipe; the crowd goes on all the same."""
    deny = 40

    def hammered(peer: Peer) -> None:
        peer.deny(retry_ms=1)

    async with serving(hammered) as server, swarm() as it:
        await it.event("ready")
        config = CrowdConfig(urls=(server.url,), clients={"immediate": deny})
        it.order(**Share(config, None, 0.0).as_order(time.monotonic(), 60.0))
        await eventually(lambda: len(server.handshakes) > 4000, within_s=45)
