"""News between workers, over a real Redis."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from herdgate_gateway.leases.channel import open_channel
from herdgate_gateway.leases.notices import Notices
from herdgate_gateway.leases.rows import WorkerRow
from tests.redis_servers import RedisServer, redis_server
from tests.wire import eventually

CHANNEL = "herdgate:leases:fleet"


class Heard:
    """What a worker was told."""

    def __init__(self) -> None:
        self.shards: set[int] = set()
        self.deaths = 0

    def notice(self, shards: Iterable[int]) -> None:
        self.shards.update(shards)

    def news(self) -> None:
        self.deaths += 1


def row(worker: str) -> WorkerRow:
    return WorkerRow(worker, f"{worker}.1", None, "UP", 0, 3_000, "", 1, 0)


@asynccontextmanager
async def listening(redis: RedisServer, worker: str) -> AsyncIterator[tuple[Notices, Heard]]:
    notices, heard = Notices(open_channel(redis.url, "fleet"), worker), Heard()
    hearing = asyncio.ensure_future(notices.run(heard))
    try:
        await eventually(lambda: _subscribed(redis), "it listens")
        yield notices, heard
    finally:
        hearing.cancel()
        await asyncio.gather(hearing, return_exceptions=True)
        await notices.aclose()


async def _subscribed(redis: RedisServer) -> bool:
    return bool(redis.command("PUBSUB", "NUMSUB", CHANNEL)[1])


async def test_gifts_reach_whom_they_are_for_and_nobody_else() -> None:
    with redis_server() as redis:
        async with listening(redis, "b") as (_, b), listening(redis, "c") as (_, c):
            giver = Notices(open_channel(redis.url, "fleet"), "a")
            for shard in range(100):
                giver.tell(row("b"), shard)
            giver.tell(row("c"), 7)
            await giver.aclose()

            await eventually(lambda: _is(len(b.shards) == 100), "all gifts were heard of")
            await eventually(lambda: _is(c.shards == {7}), "the other one too")


async def test_a_death_is_news_to_all() -> None:
    with redis_server() as redis:
        async with listening(redis, "b") as (notices, b):
            await notices.tell_death("a.1")

            await eventually(lambda: _is(b.deaths == 1), "it was heard of")


async def test_what_is_no_news_is_passed_over() -> None:
    with redis_server() as redis:
        async with listening(redis, "b") as (notices, b):
            for text in (
                "",
                "no json",
                "[]",
                "7",
                '{"to": "b"}',
                '{"to": "b", "shards": 3}',
                '{"to": "b", "shards": ["x"]}',
            ):
                redis.command("PUBLISH", CHANNEL, text)
            await notices.tell_death("a.1")

            await eventually(lambda: _is(b.deaths == 1), "what came behind was heard of")
            assert b.shards == set()


async def test_a_redis_that_is_away_is_no_fault_and_heard_again_when_it_is_back() -> None:
    with redis_server() as redis:
        async with listening(redis, "b") as (notices, b):
            redis.kill()
            notices.tell(row("b"), 1)
            await notices.tell_death("a.1")
            redis.start()
            await eventually(lambda: _subscribed(redis), "it listens again", within_s=10)
            await notices.tell_death("a.2")

            await eventually(lambda: _is(b.deaths >= 1), "it was heard of")


async def _is(holds: bool) -> bool:
    return holds
