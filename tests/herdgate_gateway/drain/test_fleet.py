"""Drains of a fleet, through a real Redis: turns, parts of the pace, and Redis away."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from herdgate import Fleet
from herdgate.stores.redis.drains import FleetDrains
from herdgate.stores.redis.errors import LinkError
from tests.herdgate_gateway.drain.draining import ask, ends, newcomers, over, steps
from tests.herdgate_gateway.gateways import echo_worker
from tests.herdgate_gateway.serving import Serving, serving
from tests.redis_servers import RedisServer, redis_server
from tests.wire import eventually, knock


@asynccontextmanager
async def drains_of(redis: RedisServer, *names: str) -> AsyncIterator[Sequence[FleetDrains]]:
    """One for each process: `group` or `group/process`."""
    made = []
    for name in names:
        group = name.split("/")[0]
        processes = sum(other.split("/")[0] == group for other in names)
        made.append(FleetDrains(Fleet(redis.url), name, group, processes))
    for one in made:
        await one.connect()
    try:
        yield made
    finally:
        for one in made:
            await one.aclose()


async def test_those_that_wait_have_their_turn_by_who_asked_first() -> None:
    with redis_server() as redis:
        async with drains_of(redis, "a", "b", "c") as (one, two, three):
            assert [(await drains.tell(5, 1, waits=True)).has_turn for drains in (one, two, three)] == [
                True,
                False,
                False,
            ]
            await one.leave()
            assert not (await three.tell(5, 1, waits=True)).has_turn, "the second one asked before"
            assert (await two.tell(5, 1, waits=True)).has_turn
            await two.leave()
            assert (await three.tell(5, 1, waits=True)).has_turn


async def test_half_of_the_gateways_may_drain_and_one_at_least() -> None:
    with redis_server() as redis:
        async with drains_of(redis, "a", "b", "c", "d") as drains:
            assert [(await one.tell(1, None, waits=True)).has_turn for one in drains[:2]] == [True, False]
        redis.command("DEL", "{herdgate:default}:drains")
        redis.command("ZADD", "{herdgate:default}:gateways", *[word for name in "abcde" for word in (1, name)])
        async with drains_of(redis, "a", "b", "c", "d") as drains:
            told = [(await one.tell(1, None, waits=True)).has_turn for one in drains]
            assert told == [True, True, False, False], "two of five"


async def test_who_does_not_wait_drains_at_once_and_takes_a_turn() -> None:
    with redis_server() as redis:
        async with drains_of(redis, "a", "b", "c") as (one, two, three):
            assert (await one.tell(1, 1, waits=False)).has_turn
            assert (await two.tell(1, 1, waits=False)).has_turn
            assert not (await three.tell(1, 2, waits=True)).has_turn
            assert (await three.tell(1, 3, waits=True)).has_turn


async def test_processes_of_one_gateway_have_one_turn_together() -> None:
    with redis_server() as redis:
        async with drains_of(redis, "a/1", "b/1", "a/2") as (one, other, two):
            assert (await one.tell(1, 1, waits=True)).has_turn
            assert not (await other.tell(1, 1, waits=True)).has_turn
            assert (await two.tell(1, 1, waits=True)).has_turn


async def test_pace_is_shared_by_what_each_has_left() -> None:
    with redis_server() as redis:
        async with drains_of(redis, "a", "b", "c") as (one, two, three):
            assert (await one.tell(30, 2, waits=True)).part == 1
            assert (await two.tell(10, 2, waits=True)).part == 0.25
            assert not (await three.tell(60, 2, waits=True)).has_turn
            assert (await one.tell(30, 2, waits=True)).part == 0.75, "who waits takes nothing"
            assert (await one.tell(0, 2, waits=True)).part == 0


async def test_who_says_no_more_is_forgotten() -> None:
    with redis_server() as redis:
        async with drains_of(redis, "a", "b") as (one, two):
            assert (await one.tell(1, 1, waits=True)).has_turn

            async def has_turn() -> bool:
                return (await two.tell(1, 1, waits=True)).has_turn

            assert not await has_turn()
            await eventually(has_turn, "the turn of who died is free", within_s=6)


async def test_without_redis_there_is_no_answer() -> None:
    with redis_server() as redis:
        async with drains_of(redis, "a") as (one,):
            redis.kill()
            with pytest.raises(LinkError):
                await one.tell(1, 1, waits=True)


def toml(redis: RedisServer, rate: float = 20, **drain: float) -> str:
    table = "".join(f"{name} = {value}\n" for name, value in drain.items())
    return f'rate = {rate}\nburst = 100\n[fleet]\nredis = "{redis.url}"\n[drain]\n{table}'


async def _knows(gateway: Serving, gateways: int) -> bool:
    fleet = (await ask(gateway, "/status.json")).json()["gates"]["default"]["fleet"]
    return bool(fleet["is_up"] and fleet["gateways"] == gateways)


async def test_clients_of_one_gateway_are_taken_by_another_in_one_try() -> None:
    async with echo_worker() as worker:
        with redis_server() as redis, serving(toml(redis), worker.url) as one, serving(toml(redis), worker.url) as two:
            for gateway in (one, two):
                await eventually(lambda gateway=gateway: _knows(gateway, 2), "both are in")  # type: ignore[misc]
            clients = await newcomers(one, 10)
            one.process.send_signal(signal.SIGTERM)
            for end in await ends(clients):
                assert end.told["retry_ms"] < 1_000
                await asyncio.sleep(max(0.0, end.at + end.told["retry_ms"] / 1_000 - time.monotonic()))
                assert (await knock(two.port, "/ws", headers=[("Herdgate-Ticket", end.told["ticket"])])).status == 101
            assert await over(one) == 0


async def test_two_that_are_told_at_once_drain_one_after_the_other() -> None:
    async with echo_worker() as worker:
        with (
            redis_server() as redis,
            serving(toml(redis, max_draining=1), worker.url) as one,
            serving(toml(redis, max_draining=1), worker.url) as two,
        ):
            for gateway in (one, two):
                await eventually(lambda gateway=gateway: _knows(gateway, 2), "both are in")  # type: ignore[misc]
            clients = [await newcomers(one, 16), await newcomers(two, 8)]
            assert (await ask(one, "/drain", "POST")).status_code == 200
            await eventually(lambda: _is_in(one, "draining"), "the first one has its turn")
            assert (await ask(two, "/drain", "POST")).status_code == 200
            assert (await ask(two, "/readyz")).text == "draining: waits for its turn\n"
            assert (await knock(two.port, "/ws")).status == 101, "until its turn it takes who comes all the same"
            first, second = await asyncio.gather(*map(ends, clients))
            assert max(end.at for end in first) < min(end.at for end in second)
            assert "waits for its turn: other gateways drain" in [what for _, _, what in steps(two)]


async def _is_in(gateway: Serving, state: str) -> bool:
    drain = (await ask(gateway, "/status.json")).json()["drain"]
    return drain is not None and drain["state"] == state


@pytest.mark.parametrize("goes", [RedisServer.kill, RedisServer.pause])
async def test_while_redis_is_down_a_gateway_drains_at_its_own_part(goes: Callable[[RedisServer], None]) -> None:
    async with echo_worker() as worker:
        with redis_server() as redis, serving(toml(redis, sigterm_s=15), worker.url) as gateway:
            await eventually(lambda: _knows(gateway, 1), "it is in")
            clients = await newcomers(gateway, 10)
            goes(redis)
            began = time.monotonic()
            gateway.process.send_signal(signal.SIGTERM)
            ended = await ends(clients)
            assert await over(gateway) == 0
            assert {end.code for end in ended} == {1012}
            assert all(end.told["retry_ms"] > 0 for end in ended)
            assert 0.5 < max(end.at for end in ended) - began < 8
            assert "Traceback" not in gateway.log()
