"""The deadline of a call: missed only if the socket, read then, holds no reply."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from herdgate.stores.redis.errors import LinkDown, LinkTimeout
from tests.herdgate.stores.redis.links import KEY, count, failing, linked, until, without_loose_ends
from tests.redis_servers import RedisServer

Run = Callable[[Coroutine[Any, Any, None]], None]
ON_LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


@ON_LOOPS
@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_late_loop_is_no_late_reply(redis: RedisServer, run: Run, turns: int) -> None:
    async def stall() -> None:
        async with without_loose_ends(), linked(redis.url) as link:
            await count(link)
            call = asyncio.create_task(count(link))
            for _ in range(turns):  # before the call, before its request is sent, and after
                await asyncio.sleep(0)
            time.sleep(0.15)  # noqa: ASYNC251 - a loop that stalls
            assert await call == [b"x", 2]
            assert link.is_up

    run(stall())


@ON_LOOPS
def test_call_without_a_reply_ends_at_its_deadline(redis: RedisServer, run: Run) -> None:
    async def wait() -> None:
        async with without_loose_ends(), linked(redis.url) as link:
            await count(link)
            redis.pause()
            error, took_s = await failing(link, LinkTimeout)
            assert str(error) == f"Redis at 127.0.0.1:{redis.port}: no reply within 50 ms"
            assert 0.05 <= took_s < 0.8
            redis.resume()
            await until(lambda: link.is_up, "the late reply is here")

    run(wait())


async def test_stalled_loop_and_stopped_redis_end_in_a_timeout(redis: RedisServer) -> None:
    async with linked(redis.url) as link:
        redis.pause()
        call = asyncio.create_task(count(link))
        await asyncio.sleep(0.001)
        time.sleep(0.1)  # noqa: ASYNC251 - a loop that stalls
        with pytest.raises(LinkTimeout):
            await call
        redis.resume()


async def test_late_reply_is_handed_over_and_keeps_the_connection(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with linked(redis.url) as link:
        late: list[object] = []
        link.on_late = late.append
        connections = redis.command("INFO", "stats")["total_connections_received"]
        redis.pause()
        await failing(link, LinkTimeout)
        _, took_s = await failing(link, LinkDown)
        assert took_s < 0.05, "it waits for no deadline"
        assert not link.is_up
        redis.resume()
        await until(lambda: bool(late), "the late reply")
        assert late == [[b"x", 1]]
        assert await count(link) == [b"x", 2]
        assert link.down_since is None
        own = 2  # connections of this test to ask for the number, the first of them counted before
        assert redis.command("INFO", "stats")["total_connections_received"] - connections < own
    assert not caplog.records


async def test_reply_that_never_comes_costs_the_connection(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with linked(redis.url) as link:
        late: list[object] = []
        link.on_late = late.append
        redis.pause()
        began = time.monotonic()
        await failing(link, LinkTimeout)
        await until(lambda: link.down_since is not None, "given up")
        assert 0.9 < time.monotonic() - began < 8
        error, _ = await failing(link, LinkDown)
        assert "no reply for 1 s" in str(error)
        redis.resume()
        await until(lambda: link.is_up, "connected again, without a call")
        assert (await count(link))[0] == b"x"
        assert not late
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.WARNING]


async def test_late_error_concerns_nobody(redis: RedisServer) -> None:
    async with linked(redis.url) as link:
        late: list[object] = []
        link.on_late = late.append
        redis.command("SET", KEY, "no number")
        redis.pause()
        await failing(link, LinkTimeout)
        redis.resume()
        await until(lambda: link.is_up, "the late error is here")
        assert not late
        assert link.down_since is None
