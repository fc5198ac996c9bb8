"""A fleet whose Redis stalls, dies, comes back empty: arrivals are answered all the same, and nobody loses a socket."""

import asyncio
import logging
import time
from collections.abc import Iterator

import pytest

from herdgate import Gate, Limits
from herdgate.core.answers import Admitted, Denied
from tests.herdgate.stores.redis.fleets import come, firm_slot_of, fleet_of, hint_of, until, until_up
from tests.redis_servers import RedisServer, redis_server

ANSWER_S = 0.2
"""A verdict takes no longer, whatever Redis does (CASES 2.12)."""


async def timed(gate: Gate, ticket: str | None = None) -> Admitted | Denied:
    """One arrival, answered in time."""
    began = time.monotonic()
    verdict = await come(gate, ticket)
    assert time.monotonic() - began < ANSWER_S
    return verdict


async def admitted_in(gates: list[Gate], seconds: float) -> int:
    """Admissions of a crowd of newcomers that comes all the time."""
    end, admitted = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        verdicts = [await timed(gate) for gate in gates]
        admitted += sum(isinstance(verdict, Admitted) for verdict in verdicts)
        await asyncio.sleep(0.002)
    return admitted


def block(seconds: float) -> None:
    """Keep the loop busy, as code that forgets about it does."""
    time.sleep(seconds)


def is_up(gate: Gate) -> bool:
    fleet = gate.snapshot().fleet
    return fleet is not None and fleet.is_up


@pytest.fixture(params=["stop", "kill", "pause"])
def way(request: pytest.FixtureRequest) -> str:
    """How Redis goes away."""
    return str(request.param)


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """A server that the test may leave in any state."""
    with redis_server() as redis:
        yield redis


async def test_without_redis_each_gate_admits_its_share_and_comes_back_by_itself(server: RedisServer, way: str) -> None:
    async with fleet_of(server.url, Limits(rate=60, burst=1), 3) as gates:
        getattr(server, way)()
        await asyncio.gather(*(timed(gate) for gate in gates))
        admitted = await admitted_in(gates, 2.0)
        assert 0.5 * 120 <= admitted <= 1.1 * 120 + 3
        assert not any(map(is_up, gates))
        (server.resume if way == "pause" else server.restart)()
        await until_up(gates, within_s=8)


async def test_redis_that_was_never_there_is_said_once_and_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    with redis_server() as server:
        server.kill()
        async with fleet_of(server.url, Limits(rate=50, burst=1), 1, wait=False) as gates:
            admitted = await admitted_in(gates, 1.0)
            assert 0.5 * 50 <= admitted <= 1.1 * 50 + 1
            assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) <= 2
            server.start()
            await until_up(gates, within_s=8)


@pytest.mark.parametrize(("fail", "admitted"), [("closed", 0), ("open", 50)])
async def test_fail_says_what_becomes_of_arrivals(server: RedisServer, fail: str, admitted: int) -> None:
    async with fleet_of(server.url, Limits(rate=5, burst=1), 1, settings={"fail": fail}) as (gate,):
        server.kill()
        verdicts = [await timed(gate) for _ in range(50)]
        assert sum(isinstance(verdict, Admitted) for verdict in verdicts) == admitted
        assert all(verdict.retry_s for verdict in verdicts if isinstance(verdict, Denied))


async def test_firm_slot_is_kept_while_redis_is_away(server: RedisServer) -> None:
    async with fleet_of(server.url, Limits(rate=5, burst=1, hold_s=3), 2) as (one, other):
        firm = await firm_slot_of(one)
        server.kill()
        await asyncio.gather(timed(one), timed(other))
        await asyncio.sleep((firm.retry_s or 0) + 0.05)
        assert isinstance(await timed(other, firm.ticket), Admitted)
        assert isinstance(await timed(other, firm.ticket), Denied), "once"


async def test_firm_slot_is_kept_by_a_redis_that_came_back_empty(server: RedisServer) -> None:
    async with fleet_of(server.url, Limits(rate=2, burst=1, hold_s=3), 2) as gates:
        firm = await firm_slot_of(gates[0])
        server.flush()
        await until(lambda: server.command("EXISTS", "{herdgate:default}:calendar") == 1, "the calendar is there again")
        await asyncio.sleep((firm.retry_s or 0) + 0.05)
        await hint_of(gates[0])
        assert isinstance(await timed(gates[1], firm.ticket), Admitted)
        assert isinstance(await timed(gates[0], firm.ticket), Denied), "once"


async def test_redis_that_lost_its_memory_admits_no_more_than_the_rate(server: RedisServer) -> None:
    async with fleet_of(server.url, Limits(rate=50, burst=25), 3) as gates:
        await until(lambda: (gates[0].snapshot().tokens or 0) >= 25, "the bucket is full")
        await asyncio.gather(*(come(gate) for gate in gates for _ in range(20)))
        server.flush()
        admitted = await admitted_in(gates, 2.0)
        assert admitted <= 1.1 * 100 + 3, "a calendar found empty starts without tokens"


async def test_reply_that_comes_too_late_is_taken_off_the_share(server: RedisServer) -> None:
    async with fleet_of(server.url, Limits(rate=0.001, burst=3), 1) as (gate,):
        server.command("HSET", "{herdgate:default}:calendar", "tokens", "3")
        server.pause()
        verdict = await timed(gate)
        assert isinstance(verdict, Denied), "the share starts without tokens"
        server.resume()
        await until(lambda: is_up(gate), "it answers again")
        admitted = [await come(gate) for _ in range(5)]
        granted = sum(isinstance(verdict, Admitted) for verdict in admitted)
        assert granted <= 3
        await until(lambda: (fleet := gate.snapshot().fleet) is not None and fleet.pending == granted, "counts heal")


async def test_loop_that_was_busy_does_not_take_the_reply_for_late(server: RedisServer) -> None:
    async with fleet_of(server.url, Limits(rate=1_000), 1) as (gate,):
        await until(lambda: (gate.snapshot().tokens or 0) >= 20, "tokens have accrued")
        for _ in range(5):
            waiting = asyncio.ensure_future(come(gate))
            await asyncio.sleep(0.001)
            block(0.08)
            assert isinstance(await waiting, Admitted)
            assert is_up(gate)


async def test_established_permits_are_told_again_to_a_redis_that_came_back_empty(server: RedisServer) -> None:
    """DESIGN 6: state, not deltas, so that counts heal."""
    async with fleet_of(server.url, Limits(rate=100), 1) as (gate,):
        await until(lambda: (gate.snapshot().tokens or 0) >= 5, "tokens have accrued")
        for _ in range(4):
            verdict = await come(gate)
            assert isinstance(verdict, Admitted)
            verdict.permit.opened()
        server.flush()
        await until(lambda: server.command("HGET", "{herdgate:default}:granted", "open") == b"4", "it knows again")


async def test_gate_that_leaves_answers_who_waits(server: RedisServer) -> None:
    async with fleet_of(server.url, Limits(rate=100), 1) as (gate,):
        server.pause()
        waiting = [asyncio.ensure_future(come(gate)) for _ in range(3)]
        await asyncio.sleep(0.005)
        await gate.aclose()
        assert all(isinstance(verdict, Admitted | Denied) for verdict in await asyncio.gather(*waiting))


async def test_secret_survives_a_redis_that_lost_its_memory(server: RedisServer) -> None:
    async with fleet_of(server.url, Limits(rate=0.1, burst=1), 2) as (one, other):
        hint = await hint_of(one)
        server.flush()
        await until(lambda: server.command("EXISTS", "{herdgate:default}:secret") == 1, "it is agreed on again")
        again = await timed(other, hint.ticket)
        assert isinstance(again, Denied)
        assert again.ticket == hint.ticket, "it is read by the other gate, and is before its time"


async def test_gate_that_nobody_comes_to_knows_that_redis_is_away(server: RedisServer) -> None:
    async with fleet_of(server.url, Limits(rate=100), 1) as (gate,):
        server.kill()
        await until(lambda: not is_up(gate), "it knows")
