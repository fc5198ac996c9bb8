"""Workers and the gateways in front of them, as processes; and what it takes to have been full."""

import asyncio
import time
from dataclasses import dataclass
from typing import cast

import pytest

from herdgate_loadtest.bench.capacity import never_full
from herdgate_loadtest.bench.crowds import crowd_at, fleet_is_up, keep_asking
from herdgate_loadtest.bench.relays import run_relays
from herdgate_loadtest.bench.workers import Worker, all_report, run_workers
from herdgate_loadtest.errors import CrowdError
from herdgate_loadtest.servers.redis import redis_server
from tests.redis_servers import redis_server as needed


@dataclass
class Held:
    """A worker that nobody has come to since 5.0."""

    name: str
    capacity: int
    held: int

    async def most(self, since: float = 0.0) -> int:
        return self.held if since <= 5.0 else 0


@pytest.mark.parametrize(
    ("share", "since", "names"),
    [
        (1.0, 0.0, ["two"]),
        (0.9, 0.0, []),
        (1.0, 6.0, ["one", "two"]),
    ],
)
async def test_workers_that_never_held_their_share_are_named(share: float, since: float, names: list[str]) -> None:
    workers = [cast(Worker, Held("one", 10, 11)), cast(Worker, Held("two", 20, 19))]
    assert await never_full(workers, share, since, 0.0) == names


async def test_crowd_fills_workers_through_gateways_and_a_killed_one_answers_nobody() -> None:
    with needed():  # skipped where there is none
        pass
    with (
        redis_server() as redis,
        run_workers((6, 4), redis) as workers,
        run_relays(2, workers, redis) as (dying, staying),
    ):
        await fleet_is_up([dying, staying])
        await all_report(workers, redis)
        async with keep_asking(crowd_at([dying, staying], {"fixed": 30}), 1_000):
            assert await never_full(workers, 0.5, 0.0, 10.0) == []  # half: the fleet learns
            await asyncio.sleep(0.5)  # the whole crowd has knocked, and counts are a quarter of a second old
            assert [await worker.most() for worker in workers] == [3, 2]
            counts = await dying.counts(), await staying.counts()
            assert sum(one.admitted for one in counts) == sum(one.open for one in counts) == 5
            assert sum(one.full for one in counts) >= 25
        assert [await worker.most(time.monotonic()) for worker in workers] == [0, 0]
        dying.kill()
        with pytest.raises(CrowdError, match="gateway 1 does not answer"):
            await dying.counts()
