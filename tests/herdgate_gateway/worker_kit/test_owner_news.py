"""News of who owns what, and of connections that have changed, over a real Redis."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from redis.asyncio import Redis

from herdgate_gateway.leases.channel import open_channel
from herdgate_gateway.leases.notices import Notices
from herdgate_gateway.leases.rows import WorkerRow
from tests.herdgate_gateway.worker_kit.serving_worker import until
from tests.redis_servers import RedisServer, redis_server
from tests.wire import eventually

CHANNEL = "herdgate:leases:f"
ROW = WorkerRow("w", "w.1", None, "UP", 1, 3_000, "ws://10.0.0.1:9000", 10, 0)


class Deaf:
    """Hears of nothing else."""

    def notice(self, shards: Iterable[int]) -> None:
        raise AssertionError(shards)

    def news(self) -> None:
        raise AssertionError("nobody has died")


async def listens(redis: RedisServer) -> None:
    async def ask() -> bool:
        return bool(redis.command("PUBSUB", "NUMSUB", CHANNEL)[1])

    await eventually(ask, "somebody listens")


async def test_what_is_gained_in_a_moment_is_told_in_one_message_a_life() -> None:
    with redis_server() as redis:
        client, notices, heard = (
            Redis.from_url(redis.url),
            Notices(open_channel(redis.url, "f"), "w"),
            list[Any](),
        )
        async with client.pubsub() as channel:
            await channel.subscribe(CHANNEL)
            await listens(redis)
            for shard in range(1_024):
                notices.tell_owned(ROW, shard, shard + 1)
            await notices.aclose()
            async with asyncio.timeout(5):
                async for message in channel.listen():
                    if message["type"] == "message":
                        heard.append(json.loads(message["data"]))
                        break
        await client.aclose()
    assert heard == [
        {
            "owner": {"worker": "w", "inc": "w.1", "addr": "ws://10.0.0.1:9000"},
            "epochs": {str(shard): shard + 1 for shard in range(1_024)},
        }
    ]


async def test_wants_that_have_changed_are_heard_and_owners_are_not_for_workers() -> None:
    with redis_server() as redis:
        notices, wanted = Notices(open_channel(redis.url, "f"), "w"), list[int]()
        hearing = asyncio.ensure_future(notices.run(Deaf(), wanted.extend))
        await listens(redis)
        for text in ('{"owner": {}, "epochs": {}}', '{"wants": 7}', '{"wants": ["x"]}', '{"wants": [3, 4]}'):
            redis.command("PUBLISH", CHANNEL, text)
        await until(lambda: wanted == [3, 4], "it was heard")
        hearing.cancel()
        await asyncio.gather(hearing, return_exceptions=True)
        await notices.aclose()
