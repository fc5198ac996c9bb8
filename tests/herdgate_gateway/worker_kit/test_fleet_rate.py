"""The rate of a fleet, read from a real Redis that a real gate has filled."""

import pytest

from herdgate import Fleet, Gate, Limits
from herdgate_gateway.worker_kit.fleet_rate import fleet_rate
from tests.redis_servers import redis_server
from tests.wire import eventually


async def test_rate_of_the_calendar_is_read_also_after_it_was_changed() -> None:
    with redis_server() as redis:
        gate = Gate(Limits(rate=123.5), fleet=Fleet(redis.url, "chat"))
        gate.start()
        try:
            await eventually(lambda: _is(redis.url, 123.5), "the rate is there")
            gate.set_rate(7.0)
            await eventually(lambda: _is(redis.url, 7.0), "the other rate is there")
            assert await fleet_rate(redis.url, "another") is None
        finally:
            await gate.aclose()


@pytest.mark.parametrize("kills", [False, True])
async def test_without_a_calendar_nobody_knows(kills: bool) -> None:
    with redis_server() as redis:
        if kills:
            redis.kill()
        assert await fleet_rate(redis.url, "chat") is None
    assert await fleet_rate(None, "chat") is None


async def test_redis_that_does_not_answer_is_not_waited_for() -> None:
    with redis_server() as redis:
        redis.pause()
        assert await fleet_rate(redis.url, "chat") is None


@pytest.mark.parametrize("told", ["inf", "nan", "-1", "fast", ""])
async def test_rate_that_can_be_none_is_not_known(told: str) -> None:
    with redis_server() as redis:
        redis.command("HSET", "{herdgate:chat}:calendar", "rate", told)
        assert await fleet_rate(redis.url, "chat") is None


async def _is(url: str, rate: float) -> bool:
    return await fleet_rate(url, "chat") == rate
