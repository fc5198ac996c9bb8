"""Failures that happened to others with limits in Redis (the number is that of the case), played on a fleet."""

import asyncio
import random
import time
from collections.abc import Callable

import pytest
from redis import Redis

from herdgate import AdmissionMiddleware, Gate, Limits
from herdgate.core.answers import Admitted, Arrival, Denied
from tests.fake_server import Connection, echo, websocket_scope
from tests.herdgate.stores.redis.fleets import admit, come, fleet_of, hint_of, until, until_up
from tests.herdgate.stores.redis.model import Fleet as Script
from tests.redis_servers import RedisServer, redis_cluster

CALENDAR = "{herdgate:default}:calendar"
SEED = 20_261_130


def fill(redis: RedisServer, tokens: int) -> None:
    """Put so many tokens into the bucket."""
    redis.command("HSET", CALENDAR, "tokens", str(tokens))


def pending(gate: Gate) -> int:
    fleet = gate.snapshot().fleet
    assert fleet is not None
    return fleet.pending


async def test_case_5_1_permits_of_a_gateway_that_died_vanish_by_themselves(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=0.001, burst=300), 2) as gates:
        async with fleet_of(redis.url, Limits(rate=0.001, burst=300), 1, wait=False) as (dying,):
            await until_up([*gates, dying])
            fill(redis, 300)
            for gate in (*gates, dying):
                await asyncio.gather(*(admit(gate) for _ in range(100)))
            await until(lambda: pending(gates[0]) == 300, "all are counted")
            dying._store.aclose = dying._store._link.aclose  # type: ignore[method-assign, union-attr]
            await dying._store._batcher.stop()  # type: ignore[union-attr]
        began = time.monotonic()
        await until(lambda: pending(gates[0]) == pending(gates[1]) == 200, "its own are gone", within_s=12)
        assert time.monotonic() - began > 5, "not before it can be dead"


async def test_case_5_5_what_is_given_back_without_having_been_taken_adds_nothing(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=0.001, burst=3), 1) as (gate,):
        redis.command("HSET", "{herdgate:default}:calendar", "tokens", "1")
        admitted = await come(gate)
        assert isinstance(admitted, Admitted)
        for _ in range(10):
            gate.undo(admitted)
        verdicts = [await come(gate) for _ in range(10)]
        assert sum(isinstance(verdict, Admitted) for verdict in verdicts) == 3, "the bucket holds no more"
        counts = redis.command("HGETALL", "{herdgate:default}:granted")
        assert all(int(count) >= 0 for count in counts.values())


async def test_case_5_7_every_key_of_a_fleet_has_an_end(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=50, burst=5), 3) as gates:
        hints = [await hint_of(gate) for gate in gates]
        await asyncio.sleep(max(hint.retry_s or 0 for hint in hints))
        await asyncio.gather(*(come(gate, hint.ticket) for gate, hint in zip(gates, hints, strict=True)))
        keys = redis.command("KEYS", "*")
        assert len(keys) >= 8
        assert {key: redis.command("TTL", key) for key in keys if redis.command("TTL", key) <= 0} == {}


async def test_case_5_7_ten_tokens_are_ten_admissions(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=0.001, burst=10), 5) as gates:
        fill(redis, 10)
        verdicts = await asyncio.gather(*(come(gate) for gate in gates for _ in range(10)))
        assert sum(isinstance(verdict, Admitted) for verdict in verdicts) == 10


async def test_case_5_8_scripts_that_redis_has_forgotten_cost_nobody_a_verdict(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=0.001, burst=1_000), 1) as (gate,):
        fill(redis, 1_000)
        for _ in range(10):
            redis.command("SCRIPT", "FLUSH")
            await admit(gate)
            fleet = gate.snapshot().fleet
            assert fleet is not None
            assert fleet.is_up


async def test_case_5_10_a_fleet_lives_on_a_cluster() -> None:
    with redis_cluster() as nodes:
        async with fleet_of(f"redis+cluster://127.0.0.1:{nodes[0].port}", Limits(rate=100, burst=5), 2) as gates:
            await until(lambda: (gates[0].snapshot().tokens or 0) >= 5, "tokens have accrued")
            verdicts = await asyncio.gather(*(come(gate) for gate in gates for _ in range(20)))
            assert 5 <= sum(isinstance(verdict, Admitted) for verdict in verdicts) <= 15
            assert all(verdict.ticket for verdict in verdicts if isinstance(verdict, Denied))


async def test_case_5_12_clients_that_abort_at_any_moment_mix_up_nothing(redis: RedisServer) -> None:
    rng = random.Random(SEED)
    async with fleet_of(redis.url, Limits(rate=0.001, burst=500, horizon_s=3_600), 2) as gates:
        fill(redis, 500)
        kept: list[Admitted] = []

        async def abort(gate: Gate) -> None:
            waiting = asyncio.ensure_future(come(gate))
            await asyncio.sleep(rng.random() * 0.03)
            waiting.cancel()
            (verdict,) = await asyncio.gather(waiting, return_exceptions=True)
            if isinstance(verdict, Admitted):
                kept.append(verdict)

        for _ in range(10):
            await asyncio.gather(*(abort(rng.choice(gates)) for _ in range(100)))
        await until(lambda: pending(gates[0]) == len(kept), "what was given back is not counted")
        verdicts = await asyncio.gather(*(come(gate) for gate in gates for _ in range(300)))
        assert len(kept) + sum(isinstance(verdict, Admitted) for verdict in verdicts) == 500, f"seed {SEED}"
        tickets = [verdict.ticket for verdict in verdicts if isinstance(verdict, Denied) and verdict.ticket]
        assert len(tickets) == len(set(tickets)), "a promise is made to one"


async def test_case_5_14_a_burst_waits_for_its_turn_and_nothing_is_exhausted(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=0.001, burst=500), 1) as (gate,):
        fill(redis, 500)
        began = time.monotonic()
        verdicts = await asyncio.gather(*(come(gate) for _ in range(500)))
        assert time.monotonic() - began < 1
        assert all(isinstance(verdict, Admitted) for verdict in verdicts)
        assert redis.command("INFO", "clients")["connected_clients"] <= 2


async def test_case_5_19_the_one_calendar_is_asked_seldom_and_is_exact(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=200, burst=50), 4) as gates:
        await until(lambda: (gates[0].snapshot().tokens or 0) >= 50, "the bucket is full")
        calls, began, admitted = redis.calls(), time.monotonic(), 0
        while (took := time.monotonic() - began) < 2:
            verdicts = await asyncio.gather(*(come(gate) for gate in gates for _ in range(25)))
            admitted += sum(isinstance(verdict, Admitted) for verdict in verdicts)
        assert (redis.calls() - calls) / took <= 4 * 55
        assert 0.95 * 200 * took <= admitted <= 50 + 200 * (took + 0.1) + 1


def forbid(redis: RedisServer) -> Callable[[], None]:
    with Redis(port=redis.port) as client:
        client.config_set("requirepass", "another password")
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def allow() -> None:
        with Redis(port=redis.port, password="another password") as client:
            client.config_set("requirepass", "")

    return allow


def fill_memory(redis: RedisServer) -> Callable[[], None]:
    redis.command("CONFIG", "SET", "maxmemory", "1")
    return lambda: redis.command("CONFIG", "SET", "maxmemory", "0")


def make_replica(redis: RedisServer) -> Callable[[], None]:
    redis.command("REPLICAOF", "127.0.0.1", "1")
    return lambda: redis.command("REPLICAOF", "NO", "ONE")


@pytest.mark.parametrize("fault", [forbid, fill_memory, make_replica])
async def test_case_2_12_a_redis_that_refuses_costs_nobody_a_verdict(
    redis: RedisServer, fault: Callable[[RedisServer], Callable[[], None]]
) -> None:
    """Refused connections, time-outs and LOADING: `test_store_faults.py` and the tests of the link."""
    async with fleet_of(redis.url, Limits(rate=100, burst=10), 1) as (gate,):
        mend = fault(redis)
        for _ in range(20):
            began = time.monotonic()
            assert isinstance(await come(gate), Admitted | Denied)
            assert time.monotonic() - began < 0.2
        mend()
        await until_up([gate], within_s=8)


def test_case_2_16_a_clock_that_goes_back_takes_nothing_away(redis: RedisServer) -> None:
    with Redis(port=redis.port) as client:
        fleet = Script(client, Limits(rate=10, burst=5))
        fleet.call(now=1_000.0)
        before = fleet.call(now=1_000.4)
        back = fleet.call(now=989.0)
        assert (back.v, back.tokens) == (before.v, before.tokens)
        assert fleet.call(now=989.1).tokens == pytest.approx(before.tokens + 1)


async def test_case_5_2_an_arrival_cancelled_just_after_its_grant_keeps_neither_permit_nor_token(
    redis: RedisServer,
) -> None:
    async with fleet_of(redis.url, Limits(rate=0.001, burst=3), 1) as (gate,):
        fill(redis, 3)
        decide = gate.decide

        async def decide_and_be_cancelled(arrival: Arrival) -> Admitted | Denied:
            verdict = await decide(arrival)
            task = asyncio.current_task()
            assert task is not None
            task.cancel()  # takes hold at the next await
            return verdict

        middleware = AdmissionMiddleware(echo, gate=gate)
        gate.decide = decide_and_be_cancelled  # type: ignore[method-assign]
        for _ in range(5):
            await Connection(middleware, websocket_scope()).ended()
        gate.decide = decide  # type: ignore[method-assign]
        assert gate.snapshot().pending == 0
        await until(lambda: pending(gate) == 0, "the fleet counts none")
        verdicts = [await come(gate) for _ in range(5)]
        assert sum(isinstance(verdict, Admitted) for verdict in verdicts) == 3
