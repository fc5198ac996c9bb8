"""Calls on a link: what is sent, what comes back, and one at a time."""

import asyncio
import random
import subprocess
import sys
from contextlib import suppress

import pytest

from herdgate import ConfigurationError
from herdgate.stores.redis.errors import LinkDown, LinkTimeout, ScriptFailed
from herdgate.stores.redis.link import Link
from herdgate.stores.redis.scripts import Script
from tests.herdgate.stores.redis.links import COUNT, KEY, count, failing, linked, until
from tests.redis_servers import RedisServer

TYPES = Script.of("types", "return {KEYS[1], ARGV[1], ARGV[2], 7, false, {'deep', {}}, redis.status_reply('OK')}")


async def test_reply_comes_as_bytes_integers_none_and_lists(redis: RedisServer) -> None:
    async with linked(redis.url) as link:
        reply = await link.call(TYPES, [KEY], [b"\x00\xff\r\n", 1.5])
    assert reply == [KEY.encode(), b"\x00\xff\r\n", b"1.5", 7, None, [b"deep", []], b"OK"]


async def test_script_is_sent_whole_only_once(redis: RedisServer) -> None:
    async with linked(redis.url) as link:
        before = redis.calls()
        assert [await count(link) for _ in range(3)] == [[b"x", 1], [b"x", 2], [b"x", 3]]
        assert (link.calls, redis.calls() - before) == (4, 4)


async def test_forgotten_script_costs_one_more_round_trip(redis: RedisServer) -> None:
    async with linked(redis.url) as link:
        await count(link)
        redis.command("SCRIPT", "FLUSH")
        assert await count(link) == [b"x", 2]
        assert link.calls == 4


async def test_calls_after_a_restart_need_no_help(redis: RedisServer) -> None:
    async with linked(redis.url) as link:
        await count(link)
        redis.restart()
        await until(lambda: link.is_up and link.down_since is not None, "connected again")
        assert await count(link) == [b"x", 1]
        assert link.down_since is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("error('boom')", "boom"),
        ("return redis.call('HGET', KEYS[1], 'a', 'b')", "wrong number"),
        ("return (", "compiling"),
    ],
)
async def test_script_that_fails_is_told_apart_and_keeps_the_connection(
    redis: RedisServer, text: str, told: str
) -> None:
    async with linked(redis.url) as link:
        with pytest.raises(ScriptFailed) as failed:
            await link.call(Script.of("wrong", text), [KEY], [])
        assert told in failed.value.reason.lower()
        assert "\n" not in str(failed.value)
        assert link.is_up
        assert link.down_since is None


async def test_second_call_at_once_is_an_error(redis: RedisServer) -> None:
    async with linked(redis.url) as link:
        first = asyncio.create_task(count(link))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="a call in flight"):
            await count(link)
        assert await first == [b"x", 1]


async def test_call_before_anything_fails_at_once_and_starts_to_connect(redis: RedisServer) -> None:
    async with linked(redis.url, checked=False) as link:
        error, took_s = await failing(link, LinkDown)
        assert "not connected yet" in str(error)
        assert took_s < 0.05, "it waits for no deadline"
        await until(lambda: link.is_up, "connected")
        assert await count(link) == [b"x", 1]


async def test_closed_link_stays_closed(redis: RedisServer) -> None:
    async with linked(redis.url) as link:
        await link.aclose()
        error, _ = await failing(link, LinkDown)
        assert "closed" in error.reason
        assert not link.is_up
        await until(lambda: b"cmd=evalsha" not in redis.command("CLIENT", "LIST"), "the connection is closed")


async def test_closing_ends_a_call_in_flight(redis: RedisServer) -> None:
    async with linked(redis.url, deadline_s=0.9) as link:
        redis.pause()
        call = asyncio.create_task(count(link))
        await asyncio.sleep(0.01)
        await link.aclose()
        with pytest.raises(LinkDown):
            await call


async def test_cancelled_call_goes_on_and_its_reply_is_handed_over(redis: RedisServer) -> None:
    async with linked(redis.url) as link:
        late: list[object] = []
        link.on_late = late.append
        redis.pause()
        call = asyncio.create_task(count(link, "cancelled"))
        await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not link.is_up
        error, _ = await failing(link, LinkDown)
        assert "an earlier call is still without its reply" in str(error)
        redis.resume()
        await until(lambda: link.is_up, "the reply is read")
        assert late == [[b"cancelled", 1]]
        assert await count(link, "next") == [b"next", 2]


async def test_reply_is_always_that_of_its_call_whenever_callers_leave(redis: RedisServer) -> None:
    rng = random.Random(5)
    async with linked(redis.url) as link:
        late: list[object] = []
        link.on_late = late.append
        replies: dict[str, list[object]] = {}

        async def ask(word: str) -> None:
            replies[word] = await count(link, word)

        for number in range(300):
            await until(lambda: link.is_up, "no reply is due")
            call = asyncio.create_task(ask(str(number)))
            await asyncio.wait({call}, timeout=rng.choice([0.0, rng.uniform(0, 0.0005), 5]))
            call.cancel()
            with suppress(asyncio.CancelledError, LinkTimeout):
                await call
        await until(lambda: link.is_up, "no reply is due")
        assert all(reply[0] == word.encode() for word, reply in replies.items())
        assert len(replies) > 50
        assert len(late) > 50
        told = [reply for reply in [*late, *replies.values()] if isinstance(reply, list)]
        assert sorted(reply[1] for reply in told) == list(range(1, len(told) + 1))
        assert redis.command("INFO", "stats")["total_connections_received"] < 10


async def test_failing_receiver_of_late_replies_harms_no_call(redis: RedisServer) -> None:
    seen: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: seen.append(str(context["exception"])))

    def fail(reply: object) -> None:
        raise ValueError("no use for it")

    async with linked(redis.url, deadline_s=0.01) as link:
        link.on_late = fail
        redis.pause()
        await failing(link, LinkTimeout)
        redis.resume()
        await until(lambda: bool(seen), "the error is reported")
        assert await count(link) == [b"x", 2]
    assert seen == ["no use for it"]


@pytest.mark.parametrize("deadline_s", [0, -1, 1, float("nan")])
def test_deadline_out_of_range_is_refused(deadline_s: float) -> None:
    with pytest.raises(ConfigurationError, match=r"deadline_s: got .* above 0 and below 1"):
        Link("redis://127.0.0.1", deadline_s=deadline_s)


def test_script_is_known_by_the_sha_that_redis_gives_it(redis: RedisServer) -> None:
    assert redis.command("SCRIPT", "LOAD", COUNT.text) == COUNT.sha.encode()


def test_script_of_several_files_is_joined_and_named_by_the_last() -> None:
    alone = Script.load("check")
    joined = Script.load("check", "check")
    assert joined.text == f"{alone.text}\n{alone.text}"
    assert (alone.name, joined.name) == ("check", "check")
    assert Script.load("check") is alone
    with pytest.raises(FileNotFoundError):
        Script.load("nothing")


MISSING = """
import sys
sys.modules["redis"] = None
try:
    import herdgate.stores.redis.link
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import sys, herdgate; print('redis' in sys.modules)", "False"),
        (MISSING, "redis: got no redis-py to reach it with; run: pip install 'herdgate[redis]'"),
    ],
    ids=["not imported", "missing"],
)
def test_redis_py_is_needed_only_here_and_named_where_it_is_missing(code: str, told: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == told
