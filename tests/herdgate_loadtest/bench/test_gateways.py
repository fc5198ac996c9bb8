"""Gateways of the benchmark, and crowds at them."""

import time
from collections import Counter
from itertools import pairwise

import pytest

from herdgate_loadtest.bench.crowds import crowd_at, fleet_is_up, keep_asking, until
from herdgate_loadtest.bench.echo import Settings
from herdgate_loadtest.bench.gateways import ask_all, run_gateways
from herdgate_loadtest.errors import CrowdError
from tests.redis_servers import redis_server


async def test_gateway_alone_counts_what_it_admits_and_denies() -> None:
    with run_gateways(1, Settings(rate=5, redis=None)) as (gateway,):
        await fleet_is_up([gateway])
        began = time.monotonic()
        async with keep_asking(crowd_at([gateway], {"obey": 20}), 1_000) as crowd:
            assert await until(lambda: crowd.snapshot().open >= 6, 5)  # the burst, and one more
            told, mine = await gateway.ask(began), crowd.snapshot()
    assert told.admitted == len(told.admitted_at) >= 6
    assert told.denied >= 14
    assert all(began <= moment <= began + mine.elapsed_s + 1 for moment in told.admitted_at)
    assert (told.calls, told.is_up, told.gateways) == (0, True, 1)
    assert told.samples[-1].decisions <= told.admitted + told.denied


async def test_gateways_of_a_fleet_find_each_other_and_count_their_calls() -> None:
    with redis_server() as redis, run_gateways(2, Settings(50, redis.url)) as gateways:
        await fleet_is_up(gateways)
        before = await ask_all(gateways)
        await until(lambda: redis.calls() > 30, 10)
        after = await ask_all(gateways)
    assert all(told.gateways == 2 for told in after)
    assert all(old.calls < new.calls for old, new in zip(before, after, strict=True))


async def test_moments_before_the_asked_one_are_left_out() -> None:
    with run_gateways(1, Settings(50, redis=None)) as (gateway,):
        await fleet_is_up([gateway])
        async with crowd_at([gateway], {"obey": 3}) as crowd:
            await crowd.bring_up()
            assert len((await gateway.ask()).admitted_at) == 3
            later = await gateway.ask(time.monotonic())
    assert (later.admitted, list(later.admitted_at)) == (3, [])


async def test_killed_gateway_answers_nobody() -> None:
    with run_gateways(1, Settings(50, redis=None)) as (gateway,):
        await fleet_is_up([gateway])
        gateway.kill()
        with pytest.raises(CrowdError, match="gateway 1 does not answer"):
            await gateway.ask()


def test_tries_go_to_gateways_picked_at_random() -> None:
    with run_gateways(3, Settings(50, redis=None)) as gateways:
        urls = crowd_at(gateways, {"obey": 10}).config.urls
    picked = Counter(urls)
    assert set(picked) == {gateway.url for gateway in gateways}
    assert all(280 < times < 400 for times in picked.values())  # of 1,009
    repeated = sum(first == second for first, second in pairwise(urls))
    assert 280 < repeated < 400  # a try goes to the same one again as often as to any other


async def test_until_tells_how_long_it_took_or_that_it_did_not_happen() -> None:
    end = time.monotonic() + 0.1
    took = await until(lambda: time.monotonic() >= end, 5)
    assert took is not None
    assert 0.05 < took < 5
    assert await until(lambda: False, 0.05) is None
