"""Redis goes away, or answers that it cannot serve: one clear error, fast, and service again without a restart."""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from herdgate.stores.redis.errors import LinkDown
from herdgate.stores.redis.link import Link
from tests.herdgate.stores.redis.links import count, failing, fake_redis, linked, until
from tests.redis_servers import RedisServer, redis_server

FAST_S = 0.8
AT_ONCE_S = 0.001

Act = Callable[[RedisServer], object]


@dataclass(frozen=True)
class Fault:
    """What happens to a server, how it is undone, and a part of what is told."""

    name: str
    happen: Act
    undo: Act
    told: str


class Dice:
    """Always 0: there is no pause between tries. Each try costs one roll."""

    def __init__(self) -> None:
        self.rolls = 0

    def __call__(self) -> float:
        self.rolls += 1
        return 0.0


async def up_within(link: Link, dice: Dice, *, tries: int) -> bool:
    """True if the link was up at a moment of so many tries to connect."""
    start = dice.rolls
    await until(lambda: link.is_up or dice.rolls >= start + tries, "tries to connect")
    return link.is_up


def config(name: str, value: str) -> Act:
    return lambda redis: redis.command("CONFIG", "SET", name, value)


def restrict(*rules: str) -> Act:
    return lambda redis: redis.command("ACL", "SETUSER", "default", *rules)


FAULTS = [
    Fault("killed", RedisServer.kill, RedisServer.start, "connect"),
    Fault("ended", RedisServer.stop, RedisServer.start, "connect"),
    Fault("full", config("maxmemory", "1"), config("maxmemory", "0"), "OOM command not allowed"),
    Fault(
        "replica",
        lambda redis: redis.command("REPLICAOF", "127.0.0.1", 1),
        lambda redis: redis.command("REPLICAOF", "NO", "ONE"),
        "READONLY You can't write",
    ),
    Fault("alone", config("min-replicas-to-write", "1"), config("min-replicas-to-write", "0"), "NOREPLICAS"),
    Fault("no scripts", restrict("-evalsha"), restrict("+evalsha"), "NOPERM"),
    Fault("no time", restrict("-incr"), restrict("+incr"), "executing the script can't run this command"),
]
EACH_FAULT = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)


@EACH_FAULT
async def test_fault_is_told_fast_and_service_comes_back(
    redis: RedisServer, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    async with linked(redis.url) as link:
        await count(link)
        fault.happen(redis)
        error, took_s = await failing(link, LinkDown)
        assert took_s < FAST_S
        assert str(error).startswith(f"Redis at 127.0.0.1:{redis.port}: ")
        assert "\n" not in str(error)
        assert isinstance(error.__cause__, Exception) or error.reason
        assert link.down_since is not None
        fault.undo(redis)
        await until(lambda: link.is_up, "connected again, without a call")
        await count(link)
        assert link.down_since is None
    told = [record.message for record in caplog.records if record.name == "herdgate.redis"]
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert "trying again in the background" in told[0]
    assert "is back after" in told[1]


@pytest.mark.parametrize("fault", FAULTS[2:], ids=lambda fault: fault.name)
async def test_refusal_is_told_in_the_words_of_redis(redis: RedisServer, fault: Fault) -> None:
    async with linked(redis.url) as link:
        await count(link)
        fault.happen(redis)
        error, _ = await failing(link, LinkDown)
        assert fault.told in error.reason


@pytest.mark.parametrize("fault", FAULTS[2:5], ids=lambda fault: fault.name)
async def test_redis_that_takes_no_writes_stays_down_while_it_is_asked(redis: RedisServer, fault: Fault) -> None:
    dice = Dice()
    async with linked(redis.url, rng=dice) as link:
        await count(link)
        fault.happen(redis)
        await failing(link, LinkDown)
        seen_up = await up_within(link, dice, tries=5)
        assert not seen_up
        assert fault.told in (await failing(link, LinkDown))[0].reason


async def test_calls_while_down_fail_at_once(redis: RedisServer) -> None:
    async with linked(redis.url, rng=lambda: 1.0) as link:
        redis.kill()
        await until(lambda: not link.is_up, "seen")
        took_s = [(await failing(link, LinkDown))[1] for _ in range(20)]
        assert sorted(took_s)[10] < AT_ONCE_S


async def test_end_of_an_idle_connection_is_seen_without_a_call(redis: RedisServer) -> None:
    async with linked(redis.url) as link:
        redis.kill()
        await until(lambda: link.down_since is not None, "seen")
        redis.start()
        await until(lambda: link.is_up, "connected again")


async def test_refused_connection_fails_the_check_and_is_tried_again(redis: RedisServer) -> None:
    redis.kill()
    async with linked(redis.url, checked=False) as link:
        began = time.perf_counter()
        with pytest.raises(LinkDown, match="connect"):
            await link.check()
        assert time.perf_counter() - began < FAST_S
        redis.start()
        await until(lambda: link.is_up, "connected")
        assert await count(link) == [b"x", 1]


async def test_link_can_be_closed_at_any_moment_of_a_try(redis: RedisServer) -> None:
    redis.command("CONFIG", "SET", "min-replicas-to-write", "1")
    for turns in range(60):
        async with linked(redis.url, checked=False, rng=Dice()) as link:
            await failing(link, LinkDown)
            for _ in range(turns):
                await asyncio.sleep(0)
            await asyncio.wait_for(link.aclose(), 8)


@pytest.mark.parametrize(("shown", "told"), [(":wrong-s3cret@", "WRONGPASS"), ("", "NOAUTH")])
async def test_wrong_password_is_told_and_its_correction_found(
    shown: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_server(password="right") as redis:
        async with linked(f"redis://{shown}127.0.0.1:{redis.port}", checked=False) as link:
            with pytest.raises(LinkDown, match=told) as failed:
                await link.check()
            error, took_s = await failing(link, LinkDown)
            assert told in error.reason
            assert took_s < FAST_S
            redis.command("CONFIG", "SET", "requirepass", "wrong-s3cret" if shown else "")
            redis.password = "wrong-s3cret" if shown else None
            await until(lambda: link.is_up, "let in")
            assert await count(link) == [b"x", 1]
    assert "s3cret" not in f"{failed.value}{error}{caplog.text}"


async def test_redis_that_has_no_room_for_a_connection(redis: RedisServer) -> None:
    redis.command("CONFIG", "SET", "maxclients", 1)
    _, writer = await asyncio.open_connection("127.0.0.1", redis.port)
    async with linked(redis.url, checked=False) as link:
        with pytest.raises(LinkDown, match="max number of clients"):
            await link.check()
        writer.close()
        await until(lambda: link.is_up, "let in")


async def test_redis_that_is_loading_is_waited_for() -> None:
    loading = True

    def answer(words: list[bytes]) -> bytes:
        if loading:
            return b"-LOADING Redis is loading the dataset in memory\r\n"
        return b":0\r\n" if words[0] == b"SETRANGE" else b"*2\r\n$1\r\nx\r\n:1\r\n"

    dice = Dice()
    async with fake_redis(answer) as port, linked(f"redis://127.0.0.1:{port}", checked=False, rng=dice) as link:
        with pytest.raises(LinkDown, match="LOADING Redis is loading"):
            await link.check()
        error, took_s = await failing(link, LinkDown)
        assert "LOADING" in error.reason
        assert took_s < FAST_S
        assert not await up_within(link, dice, tries=5)
        loading = False
        await until(lambda: link.is_up, "loaded")
        assert await count(link) == [b"x", 1]


@pytest.mark.parametrize(
    "garbage", [b"HTTP/1.1 400 Bad Request\r\n", b":many\r\n", b"*1\r\n$x\r\n", b":1\r\n:2\r\n:3\r\n"]
)
async def test_server_that_speaks_something_else_is_dropped(garbage: bytes) -> None:
    async with fake_redis(lambda words: garbage) as port, linked(f"redis://127.0.0.1:{port}", checked=False) as link:
        with pytest.raises(LinkDown):
            await link.check()
        assert not link.is_up


async def test_old_redis_wraps_the_errors_of_commands_in_scripts() -> None:
    wrapped = b"-ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed when used memory\r\n"

    def answer(words: list[bytes]) -> bytes:
        return b":0\r\n" if words[0] == b"SETRANGE" else wrapped

    async with fake_redis(answer) as port, linked(f"redis://127.0.0.1:{port}", checked=False) as link:
        await failing(link, LinkDown)
        await until(lambda: link.is_up, "connected")
        error, _ = await failing(link, LinkDown)
        assert "OOM command not allowed" in error.reason


async def test_server_that_takes_connections_and_does_not_answer(redis: RedisServer) -> None:
    redis.pause()
    async with linked(redis.url, checked=False) as link:
        began = time.perf_counter()
        with pytest.raises(LinkDown, match="no answer"):
            await link.check()
        assert time.perf_counter() - began < 8
        redis.resume()
        await until(lambda: link.is_up, "connected")


async def test_server_that_refuses_every_call_is_asked_less_and_less(redis: RedisServer) -> None:
    async with linked(redis.url, rng=lambda: 1.0) as link:
        redis.command("ACL", "SETUSER", "default", "-evalsha")
        pauses = []
        for _ in range(4):
            await until(lambda: link.is_up, "connected: the connection itself is taken")
            await failing(link, LinkDown)
            began = time.monotonic()
            await until(lambda: link.is_up, "connected again")
            pauses.append(time.monotonic() - began)
        assert pauses[0] >= 0.05
        assert pauses[3] >= 0.4
        redis.command("ACL", "SETUSER", "default", "+evalsha")
        await count(link)  # answered: the pauses start anew
        redis.command("ACL", "SETUSER", "default", "-evalsha")
        await failing(link, LinkDown)
        began = time.monotonic()
        await until(lambda: link.is_up, "connected again")
        assert time.monotonic() - began < pauses[3]


async def test_pauses_are_as_long_as_the_dice_say(redis: RedisServer) -> None:
    dice = Dice()
    redis.kill()
    async with linked(redis.url, checked=False, rng=dice) as link:
        await failing(link, LinkDown)
        await until(lambda: dice.rolls > 20, "tries without a pause, as the dice say")
        redis.start()
        await until(lambda: link.is_up, "connected")


def test_link_needs_no_loop_to_be_made() -> None:
    assert not Link("redis://127.0.0.1:1", rng=random.random).is_up
