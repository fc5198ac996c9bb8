"""What drains of a fleet make of lies in Redis, of a clock that steps, and of members that die or stand still."""

import asyncio
import json
import signal
import time
from collections.abc import Callable

import pytest

from herdgate import Fleet, FleetSnapshot
from herdgate.stores.redis.drains import FleetDrains
from herdgate_gateway.drain.turns import AWAY_S, FleetTurns
from tests.herdgate_gateway.drain.draining import ask, ends, newcomers, over, steps
from tests.herdgate_gateway.drain.test_fleet import _is_in, _knows, drains_of, toml
from tests.herdgate_gateway.gateways import echo_worker
from tests.herdgate_gateway.serving import Serving, serving
from tests.redis_servers import RedisServer, redis_server
from tests.wire import eventually

KEY = "{herdgate:default}:drains"
FAR = 1e12
ROW = {"group": "liar", "left": 5, "drains": True, "asked": 1, "dies": 1}
LIES = {
    "no JSON": "{",
    "a list": "[]",
    "a number": "7",
    "no row": "{}",
    "immortal": json.dumps(ROW | {"dies": FAR}),
    "dead": json.dumps(ROW),
    "asks later": json.dumps(ROW | {"asked": FAR}),
    "words for numbers": json.dumps(ROW | {"left": "many", "dies": "never"}),
    "a number for its group": json.dumps(ROW | {"group": 1}),
    "no left": json.dumps(ROW | {"left": None}),
    "too many left": '{"group":"liar","left":1e300,"drains":true,"asked":1,"dies":%d}',
    "no number left": '{"group":"liar","left":nan,"drains":true,"asked":1,"dies":%d}',
    "fewer than none left": '{"group":"liar","left":-1e6,"drains":true,"asked":1,"dies":%d}',
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
async def test_row_that_cannot_be_takes_no_turn_and_no_part_of_the_pace(lie: str) -> None:
    with redis_server() as redis:
        soon = redis.command("TIME")[0] + 2
        redis.command("HSET", KEY, "liar", lie.replace("%d", str(soon)))
        async with drains_of(redis, "a") as (one,):
            assert await one.tell(30, 1, waits=True) == (True, 1.0)
            assert redis.command("HKEYS", KEY) == [b"a"]


@pytest.mark.parametrize("words", [("SET", KEY, "x"), ("RPUSH", KEY, "x"), ("SADD", KEY, "x")])
async def test_key_that_is_something_else_is_written_anew(words: tuple[str, ...]) -> None:
    with redis_server() as redis:
        redis.command(*words)
        async with drains_of(redis, "a") as (one,):
            assert await one.tell(30, 1, waits=True) == (True, 1.0)


async def test_thousands_of_rows_are_forgotten_together() -> None:
    with redis_server() as redis:
        script = "for i = 1, 20000 do redis.call('HSET', KEYS[1], i, ARGV[1]) end"
        redis.command("EVAL", script, 1, KEY, json.dumps(ROW))
        async with drains_of(redis, "a") as (one,):
            assert await one.tell(30, 1, waits=True) == (True, 1.0)
            assert redis.command("HKEYS", KEY) == [b"a"]


async def test_clock_that_was_set_back_leaves_nobody_waiting_for_the_old_time() -> None:
    with redis_server() as redis:
        async with drains_of(redis, "a", "b") as (one, two):
            assert (await one.tell(30, 1, waits=False)).has_turn
            assert not (await two.tell(30, 1, waits=True)).has_turn
            for name, text in redis.command("HGETALL", KEY).items():
                row = json.loads(text)
                row |= {"asked": row["asked"] + 3_600, "dies": row["dies"] + 3_600}
                redis.command("HSET", KEY, name, json.dumps(row))
            assert (await one.tell(30, 1, waits=False)).has_turn
            assert not (await two.tell(30, 1, waits=True)).has_turn, "it hears of the one that drains"
            await one.leave()
            assert (await two.tell(30, 1, waits=True)).has_turn


async def test_part_of_one_that_has_no_turn_is_never_more_than_all() -> None:
    with redis_server() as redis:
        async with drains_of(redis, "a", "b") as (one, two):
            await one.tell(2, 1, waits=True)
            told = await two.tell(98, 1, waits=True)
            assert (told.has_turn, told.part) == (False, 0.98)


async def test_smallest_part_is_more_than_nothing() -> None:
    with redis_server() as redis:
        async with drains_of(redis, "a", "b") as (one, two):
            await one.tell(9_000_000, 2, waits=False)
            assert 0 < (await two.tell(1, 2, waits=False)).part < 1e-6


async def test_fleet_that_is_emptied_on_the_way_learns_again_who_drains() -> None:
    with redis_server() as redis:
        async with drains_of(redis, "a", "b") as (one, two):
            await one.tell(5, 1, waits=False)
            redis.flush()
            assert (await one.tell(5, 1, waits=False)).has_turn
            assert not (await two.tell(5, 1, waits=True)).has_turn


async def _turns(redis: RedisServer, fleet: Callable[[], FleetSnapshot | None]) -> FleetTurns:
    turns = FleetTurns(FleetDrains(Fleet(redis.url), "b", "b"), 1, fleet)
    turns.start(lambda: 10, lambda: True)
    return turns


async def test_redis_that_falters_gives_nobody_a_turn_and_one_that_stays_away_does() -> None:
    with redis_server() as redis:
        async with drains_of(redis, "a") as (one,):
            await one.tell(10, 1, waits=False)
            turns = await _turns(redis, lambda: FleetSnapshot(is_up=False, gateways=4, pending=0, open=0, calls=0))
            try:
                redis.pause()
                began = time.monotonic()
                while time.monotonic() - began < AWAY_S - 1:
                    assert not turns.has_turn
                    await asyncio.sleep(0.05)

                async def has_turn() -> bool:
                    return turns.has_turn

                await eventually(has_turn, "nobody waits for a Redis that is away", within_s=5)
                assert turns.part == 1.0, "of its own part"
                redis.resume()
            finally:
                await turns.aclose()


async def test_fleet_that_tells_nothing_of_drains_grants_a_part_that_all_may_have() -> None:
    """The calendar answers, and what tells the turns does not."""
    with redis_server() as redis:
        redis.command("ACL", "SETUSER", "default", "-evalsha", "-eval")
        turns = await _turns(redis, lambda: FleetSnapshot(is_up=True, gateways=4, pending=0, open=0, calls=0))
        try:

            async def has_turn() -> bool:
                return turns.has_turn

            await eventually(has_turn, "it does not wait for ever", within_s=6)
            assert turns.part == 0.25
        finally:
            await turns.aclose()


async def test_one_whose_time_runs_out_before_its_turn_keeps_to_the_pace() -> None:
    """The first one drains 2 sockets, and takes its time for that; the second one has 40, and 6 s for them."""
    async with echo_worker() as worker:
        with (
            redis_server() as redis,
            serving(toml(redis, max_draining=1, settle_s=20, call_s=40), worker.url) as one,
            serving(toml(redis, max_draining=1), worker.url) as two,
        ):
            for gateway in (one, two):
                await eventually(lambda gateway=gateway: _knows(gateway, 2), "both are in")  # type: ignore[misc]
            await newcomers(one, 2)
            clients = await newcomers(two, 40)
            assert (await ask(one, "/drain", "POST")).status_code == 200
            await eventually(lambda: _is_in(one, "draining"), "the first one has its turn")
            ending = asyncio.ensure_future(ends(clients))
            assert (await ask(two, "/drain", "POST", deadline="6")).status_code == 200
            moved = sorted(end.at for end in await ending if end.told["retry_ms"] < 1_000)
            assert "its turn has not come, and there is no more time to wait for it" in [
                what for *_, what in steps(two)
            ]
            assert len(moved) > 20
            for number, moment in enumerate(moved):
                assert moment - moved[0] >= (number - 4) / 10, moved


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGSTOP])
async def test_turn_of_a_gateway_that_is_killed_or_stands_still_goes_to_the_next(sign: signal.Signals) -> None:
    async with echo_worker() as worker:
        with (
            redis_server() as redis,
            serving(toml(redis, rate=2, max_draining=1, call_s=40), worker.url) as one,
            serving(toml(redis, rate=2, max_draining=1, call_s=40, sigterm_s=1), worker.url) as two,
        ):
            for gateway in (one, two):
                await eventually(lambda gateway=gateway: _knows(gateway, 2), "both are in")  # type: ignore[misc]
            clients, others = await newcomers(one, 10), await newcomers(two, 1)
            await ask(one, "/drain", "POST")
            await eventually(lambda: _is_in(one, "draining"), "the first one has its turn")
            await ask(two, "/drain", "POST")
            await eventually(lambda: _is_in(two, "waiting"), "the second one waits")
            try:
                one.process.send_signal(sign)
                await eventually(lambda: _is_in(two, "drained"), "the second one has its turn", within_s=10)
                (end,) = await ends(others)
                assert end.code == 1012
            finally:
                if sign == signal.SIGSTOP:
                    one.process.send_signal(signal.SIGCONT)
            if sign == signal.SIGSTOP:
                await eventually(lambda: _is_in(one, "draining"), "it goes on")
                one.process.send_signal(signal.SIGTERM)
                one.process.send_signal(signal.SIGTERM)
                assert {end.code for end in await ends(clients)} == {1012}
                assert await over(one) == 0


async def test_at_a_rate_of_0_gateways_wait_for_their_turn_and_drain_once_it_is_raised() -> None:
    async with echo_worker() as worker:
        with (
            redis_server() as redis,
            serving(toml(redis, max_draining=1, call_s=40, sigterm_s=1), worker.url) as one,
            serving(toml(redis, max_draining=1, call_s=40, sigterm_s=1), worker.url) as two,
        ):
            for gateway in (one, two):
                await eventually(lambda gateway=gateway: _knows(gateway, 2), "both are in")  # type: ignore[misc]
            clients = [await newcomers(one, 3), await newcomers(two, 3)]
            assert (await ask(one, "/rate", "POST", rate="0")).status_code == 200
            for gateway in (one, two):
                await eventually(lambda gateway=gateway: _has_rate(gateway, 0), "nobody is admitted")  # type: ignore[misc]
            await ask(one, "/drain", "POST")
            await eventually(lambda: _says(one, "nobody at 0/s, unless that changes"), "it says so")
            await ask(two, "/drain", "POST")
            await eventually(lambda: _says(two, "waits for its turn"), "it waits")
            ending = asyncio.ensure_future(asyncio.gather(*map(ends, clients)))
            assert (await ask(one, "/rate", "POST", rate="20")).status_code == 200
            first, second = await ending
            assert max(end.at for end in first) < min(end.at for end in second)
            assert all(end.told["retry_ms"] < 1_000 for end in (*first, *second))


async def _has_rate(gateway: Serving, rate: float) -> bool:
    return bool((await ask(gateway, "/status.json")).json()["gates"]["default"]["rate"] == rate)


async def _says(gateway: Serving, what: str) -> bool:
    return what in gateway.log()
