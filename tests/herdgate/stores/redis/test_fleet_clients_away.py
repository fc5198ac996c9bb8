"""Limits per client of scope `fleet` while Redis is away, and once it is back."""

import asyncio
from contextlib import suppress

import pytest

from herdgate import Fleet, Gate, Limits
from herdgate.core.answers import Admitted
from herdgate.fleet import Fail
from tests.herdgate.stores.redis.links import until
from tests.herdgate.stores.redis.test_fleet_clients import ANN, BOB, crowd, decide, denied, gates, over_fleet, places
from tests.redis_servers import RedisServer


async def without(redis: RedisServer, *fleet: Gate) -> None:
    """Stop Redis, and wait until these gates have a calendar of their own, and tokens."""
    redis.kill()
    for gate in fleet:
        await decide(gate, BOB)
    for gate in fleet:
        await until(lambda gate=gate: (gate.snapshot().tokens or 0) > 100, "there are tokens")  # type: ignore[misc]


async def test_each_process_allows_its_share(redis: RedisServer) -> None:
    tier = over_fleet(rate=0.01, burst=12, open=6)
    async with gates(redis.url, client=tier) as fleet:
        await without(redis, *fleet)
        for gate in fleet:
            admitted, reasons = await crowd([gate], 10)
            assert (len(admitted), reasons) == (2, {"client_open": 2, "client_rate": 6})


async def test_share_is_never_less_than_one(redis: RedisServer) -> None:
    async with gates(redis.url, client=over_fleet(rate=0.01, burst=2, open=1)) as fleet:
        await without(redis, *fleet)
        for gate in fleet:
            admitted, reasons = await crowd([gate], 3)
            assert (len(admitted), reasons) == (1, {"client_rate": 2})


async def test_limit_of_nobody_stays_one(redis: RedisServer) -> None:
    async with gates(redis.url, client=over_fleet(open=0), anonymous=over_fleet(rate=0)) as fleet:
        redis.kill()
        assert (await denied(fleet[0])).reason == "client_open"
        assert (await denied(fleet[0], ANN._replace(key=ANN.address, identified=False))).reason == "client_rate"


async def test_sockets_of_before_count_against_the_share(redis: RedisServer) -> None:
    async with gates(redis.url, client=over_fleet(open=6)) as fleet:
        await crowd(fleet[:1], 2)
        await without(redis, *fleet)
        assert (await denied(fleet[0])).reason == "client_open"
        assert len((await crowd(fleet[1:2], 5))[0]) == 2


@pytest.mark.parametrize(("fail", "expected"), [("closed", {"client_rate": 3}), ("open", {})])
async def test_fleet_says_what_becomes_of_arrivals(redis: RedisServer, fail: Fail, expected: dict[str, int]) -> None:
    async with gates(redis.url, 1, fail=fail, client=over_fleet(rate=0.01, burst=1, open=1)) as (gate,):
        redis.kill()
        admitted, reasons = await crowd([gate], 3)
        assert (len(admitted), reasons) == (3 - sum(expected.values()), expected)
        if fail == "closed":
            refusal = await denied(gate)
            assert 1 <= (refusal.retry_s or 0) <= 2
            assert refusal.quota is None


async def test_held_places_are_put_back_when_redis_is_back(redis: RedisServer) -> None:
    async with gates(redis.url, 2, client=over_fleet(open=4)) as fleet:
        before, _ = await crowd(fleet, 3)
        await without(redis, *fleet)
        alone, _ = await crowd([fleet[1]], 1)
        before.pop().permit.release()
        redis.start()
        await until(lambda: places(redis) == 2 + len(alone), "all are back", within_s=15)
        assert len(alone) == 1
        assert (await crowd(fleet, 8))[1]["client_open"] == 7


async def test_reply_that_comes_too_late_leaves_no_place_behind(redis: RedisServer) -> None:
    """Redis stands still in the middle of calls: what it does later, for arrivals settled here, is undone."""
    async with gates(redis.url, 1, fail="closed", client=over_fleet(open=2)) as (gate,):
        assert isinstance(await decide(gate, BOB), Admitted)
        redis.pause()
        assert (await denied(gate)).reason == "client_rate"
        redis.resume()
        await until(lambda: (places(redis), places(redis, "bob")) == (0, 1), "only what is held is there")


async def test_client_that_leaves_while_redis_stands_still_leaves_nothing(redis: RedisServer) -> None:
    async with gates(redis.url, 1, client=over_fleet(open=1)) as (gate,):
        redis.pause()
        waiting = asyncio.create_task(decide(gate))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        redis.resume()
        await until(lambda: places(redis) == 0, "the place is free")
        assert isinstance(await decide(gate), Admitted)


async def test_fleet_without_redis_from_the_start_allows_each_process_the_whole(redis: RedisServer) -> None:
    """Nothing is known of other processes then."""
    redis.kill()
    limits = Limits(rate=1_000_000, client=over_fleet(open=4))
    gate = Gate(limits, fleet=Fleet(redis.url))
    try:
        admitted, reasons = await crowd([gate], 6)
        assert (len(admitted), reasons) == (4, {"client_open": 2})
    finally:
        await gate.aclose()
