"""Workers are told over a real Redis; without it everything goes on."""

import json
import time

from redis import Redis

from herdgate_gateway.leases.channel import open_channel
from tests.child_servers import free_port
from tests.redis_servers import redis_server


async def test_shards_are_told_to_the_fleet() -> None:
    with redis_server() as redis, Redis(port=redis.port) as client, client.pubsub() as channel:
        channel.subscribe("herdgate:leases:blue")
        assert (channel.get_message(timeout=5) or {})["type"] == "subscribe"
        news = open_channel(redis.url, "blue")
        assert await news.publish({"wants": [17, 40]}) is True
        await news.aclose()
        heard = channel.get_message(timeout=5)
        assert heard is not None
        assert json.loads(heard["data"]) == {"wants": [17, 40]}


async def test_redis_that_is_away_costs_a_moment_and_no_error() -> None:
    news = open_channel(f"redis://127.0.0.1:{free_port()}/0", "blue")
    began = time.monotonic()
    assert await news.publish({"wants": [1]}) is False
    assert time.monotonic() - began < 5
    await news.aclose()


async def test_redis_that_stands_still_costs_a_moment_and_no_error() -> None:
    with redis_server() as redis:
        news = open_channel(redis.url, "blue")
        redis.pause()
        began = time.monotonic()
        assert await news.publish({"wants": [1]}) is False
        assert 0.4 < time.monotonic() - began < 5
        redis.resume()
        await news.aclose()
