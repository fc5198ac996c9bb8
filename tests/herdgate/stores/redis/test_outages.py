"""Outages of Redis, counted once: what gates of a fleet admit, keep and say while it is away and when it is back."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from herdgate import Fleet, Gate, Limits
from herdgate.core.answers import Admitted
from herdgate.stores.redis.errors import LinkTimeout
from herdgate.stores.redis.scripts import Script
from herdgate.stores.redis.shared_secret import SharedSecret
from herdgate.stores.redis.store import RedisStore
from tests.herdgate.stores.redis.fleets import admit, come, firm_slot_of, fleet_of, until, until_up
from tests.herdgate.stores.redis.links import fake_redis
from tests.redis_servers import RedisServer

CALENDAR = "{herdgate:default}:calendar"


def store_of(gate: Gate) -> RedisStore:
    store = gate._store
    assert isinstance(store, RedisStore)
    return store


def is_away(gate: Gate) -> bool:
    """It has noticed."""
    return store_of(gate)._alone.share is not None


def is_up(gate: Gate) -> bool:
    fleet = gate.snapshot().fleet
    return fleet is not None and fleet.is_up


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


async def newcomers(gates: Sequence[Gate], while_: Callable[[], bool]) -> int:
    """How many of a crowd come in that comes all the time."""
    admitted = 0
    while while_():
        verdicts = await asyncio.gather(*(come(gate) for gate in gates for _ in range(3)))
        admitted += sum(isinstance(verdict, Admitted) for verdict in verdicts)
        await asyncio.sleep(0.01)
    return admitted


async def test_what_operators_have_set_survives_a_redis_that_comes_back_empty(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=100), 2) as gates:
        gates[0].set_rate(7)
        gates[1].set_admit_fraction(0.5)
        await until(
            lambda: all((gate.snapshot().rate, gate.snapshot().admit_fraction) == (7, 0.5) for gate in gates), "set"
        )
        issuer = redis.command("HGET", CALENDAR, "issuer")
        redis.restart()
        await until(lambda: redis.command("HGET", CALENDAR, "issuer") not in {None, issuer}, "a new one", within_s=8)
        await until_up(gates, within_s=8)
        assert [(gate.snapshot().rate, gate.snapshot().admit_fraction) for gate in gates] == [(7, 0.5)] * 2


async def test_what_is_set_while_redis_is_away_holds_here_at_once_and_everywhere_when_it_is_back(
    redis: RedisServer,
) -> None:
    async with fleet_of(redis.url, Limits(rate=500), 2) as (one, other):
        redis.kill()
        one.set_rate(4)
        one.set_admit_fraction(0)
        await until(lambda: is_away(one) and is_away(other), "both have noticed")
        assert (one.snapshot().rate, one.snapshot().admit_fraction) == (2, 0), "its half of it"
        assert not await newcomers([one], counted(20))
        redis.start()
        await until_up([one, other], within_s=8)
        await until(lambda: (other.snapshot().rate, other.snapshot().admit_fraction) == (4, 0), "the other one knows")


def counted(times: int) -> Callable[[], bool]:
    left = iter(range(times))
    return lambda: next(left, None) is not None


async def test_reload_while_redis_is_away_holds_at_once(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=500), 1) as (gate,):
        redis.kill()
        await until(lambda: is_away(gate), "it has noticed")
        gate.set_limits(Limits(rate=3, burst=2, admit_fraction=0.25))
        snapshot = gate.snapshot()
        assert (snapshot.rate, snapshot.burst, snapshot.admit_fraction) == (3, 2, 0.25)
        redis.start()
        await until_up([gate], within_s=8)
        assert (gate.snapshot().rate, gate.snapshot().burst) == (3, 2)


@pytest.mark.parametrize("count", [1, 2])
async def test_an_outage_is_refilled_once(redis: RedisServer, count: int) -> None:
    rate = burst = 60
    async with fleet_of(redis.url, Limits(rate=rate, burst=burst), count) as gates:
        await until(lambda: (gates[0].snapshot().tokens or 0) >= burst, "the bucket is full")
        began = time.monotonic()
        admitted = await newcomers(gates, lambda: time.monotonic() < began + 0.5)
        redis.pause()
        admitted += await newcomers(gates, lambda: time.monotonic() < began + 2.5)
        redis.resume()
        admitted += await newcomers(gates, lambda: not all(map(is_up, gates)) or time.monotonic() < began + 4)
        took = time.monotonic() - began
        assert admitted <= burst + rate * took + 0.25 * rate
        assert admitted >= 0.7 * rate * took


async def test_gateway_that_was_stopped_takes_no_time_with_it(redis: RedisServer) -> None:
    """What it tells after an hour is what it was told last."""
    async with fleet_of(redis.url, Limits(rate=50), 1) as (gate,):
        carried = store_of(gate)._carried
        assert carried.last is not None
        head = carried.head(carried.at + 3_600, None)
        assert head["seen_v"] == head["paid_v"] == carried.last.v
        assert head["passed_v"] == carried.last.v + 1


async def test_share_fills_from_the_moment_the_outage_is_noticed(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=50, burst=5), 1) as (gate,):
        redis.kill()
        await until(lambda: is_away(gate), "it has noticed, and nobody has come")
        await until(lambda: (gate.snapshot().tokens or 0) >= 5, "its bucket is full")
        await admit(gate)


async def test_ticket_used_while_redis_was_away_is_used(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=4, burst=1, hold_s=30), 1) as (gate,):
        firm = await firm_slot_of(gate)
        redis.pause()
        await until(lambda: is_away(gate), "it has noticed")
        await asyncio.sleep((firm.retry_s or 0) + 0.05)
        await admit(gate, firm.ticket)
        redis.resume()
        await until(lambda: is_up(gate), "it is back", within_s=8)
        assert not store_of(gate)._alone.used.all(), "it has been told"
        redis.command("HSET", CALENDAR, "tokens", "0")
        read = gate._control.signers[0].read(firm.ticket or "")
        assert read is not None
        key = f"{{herdgate:default}}:spent:{read.issuer}:{read.at_ms // 60_000}"
        assert redis.command("GETBIT", key, read.serial) == 1


async def test_gate_that_leaves_is_forgotten_at_once(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=50), 1) as (one,):
        async with fleet_of(redis.url, Limits(rate=50), 1, wait=False) as (other,):
            await until_up([one, other])
        await until(lambda: (fleet := one.snapshot().fleet) is not None and fleet.gateways == 1, "alone", within_s=1)


async def test_script_that_fails_is_said_once_with_the_way_out(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    redis.command("SET", "{herdgate:default}:gateways", "no set")
    async with fleet_of(redis.url, Limits(rate=60, burst=1), 1, wait=False) as (gate,):
        await newcomers([gate], counted(40))
        (line,) = errors(caplog)
        assert "WRONGTYPE" in line
        assert line.endswith(
            "fleet default: this process decides alone; delete the keys {herdgate:default}:* or upgrade all gateways"
        )
        redis.command("DEL", "{herdgate:default}:gateways")
        await until_up([gate])


async def test_process_whose_calls_fail_from_the_start_takes_its_part(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=60), 2):
        redis.command("SET", "{herdgate:default}:granted", "no hash")
        async with fleet_of(redis.url, Limits(rate=60), 1, wait=False) as (late,):
            await until(lambda: is_away(late), "its calls fail")
            assert late.snapshot().rate == 20, "a third"


async def test_process_that_cannot_count_the_fleet_goes_by_what_was_told_last(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=60), 2):
        redis.command("SET", "{herdgate:default}:gateways", "no set")
        async with fleet_of(redis.url, Limits(rate=60), 1, wait=False) as (late,):
            await until(lambda: is_away(late), "its calls fail")
            assert late.snapshot().rate == 20, "a third"


@pytest.mark.parametrize("answer", [b":5\r\n", b"+OK\r\n", b"$-1\r\n", b"*0\r\n", b"*2\r\n$3\r\n1 2\r\n$0\r\n\r\n"])
async def test_redis_that_answers_nonsense_is_said_once_and_no_order_is_lost(
    answer: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    def reply(words: list[bytes]) -> bytes:
        return answer if words[0].upper().startswith(b"EVAL") else b"+OK\r\n"

    async with (
        fake_redis(reply) as port,
        fleet_of(f"redis://127.0.0.1:{port}", Limits(rate=60), 1, wait=False) as (gate,),
    ):
        await until(lambda: is_away(gate), "it decides alone")
        gate.set_rate(6)
        gate._store.give_back()
        store_of(gate)._given_back = 3
        await newcomers([gate], counted(30))
        assert store_of(gate)._orders.pending() == {"set_rate": 6}
        assert store_of(gate)._given_back == 3
        assert gate.snapshot().rate == 6
    lines = [line for line in errors(caplog) if "no reply" in line]
    assert len(lines) == 1
    assert not any(record.exc_info for record in caplog.records)


class SlowLink:
    """In place of a link: no call is answered in time until `is_fast`."""

    is_up, calls, where = True, 0, "nowhere"

    def __init__(self, gate: Gate) -> None:
        self.is_fast = False
        self.batches: list[int] = []
        self._link = store_of(gate)._link

    async def call(self, script: Script, keys: Sequence[str | bytes], args: Sequence[Any]) -> object:
        if script.name != "decide":
            return await self._link.call(script, keys, args)
        self.batches.append(len(args[1]))
        if not self.is_fast:
            raise LinkTimeout("nowhere", "no reply within 50 ms")
        return await self._link.call(script, keys, args)


async def test_while_replies_are_late_calls_are_made_without_arrivals(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=100), 1) as (gate,):
        store = store_of(gate)
        real, slow = store._link, SlowLink(gate)
        store._link = slow  # type: ignore[assignment]
        await newcomers([gate], counted(60))
        await until(lambda: len(slow.batches) >= 4, "heartbeats go on")
        assert sum(bool(batch) for batch in slow.batches) == 1, "the first was not known to be late"
        slow.is_fast = True
        await until(lambda: is_up(gate), "one was answered in time")
        await come(gate)
        assert slow.batches[-1] > 0
        store._link = real


async def test_reply_that_is_late_tells_how_many_share(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=90), 2) as (one, other):
        last = store_of(other).last
        assert last is not None
        redis.kill()
        await until(lambda: is_away(one), "it has noticed")
        assert one.snapshot().rate == 45
        store_of(one)._carried.learn(last._replace(gateways=3, rate=60.0), 0.0, time.monotonic())
        store_of(one)._alone.learn(last._replace(gateways=3, rate=60.0), 0.0, time.monotonic())
        assert one.snapshot().rate == 20


class Secrets:
    """In place of a link to where the secret is."""

    def __init__(self) -> None:
        self.told: list[object] = []

    async def call(self, script: Script, keys: object, args: object) -> object:
        return self.told.pop(0)


async def test_what_former_secrets_have_signed_stays_good_two_of_them() -> None:
    link, taken = Secrets(), list[Sequence[bytes]]()
    secret = SharedSecret(link, "k")  # type: ignore[arg-type]
    own, *others = (letter * 16 for letter in (b"a", b"b", b"c", b"d"))
    secret.share(own, taken.append)
    link.told = [*others, own, b"short", None]
    for issuer in range(1, 7):
        await secret.agree(issuer)
    b, c, d = others
    assert taken == [[own], [b, own], [c, b, own], [d, c, b], [own, d, c]]


async def test_firm_slot_is_kept_when_a_gate_that_has_just_started_finds_redis_empty_first(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=10, burst=1), 1) as (old,):
        store = store_of(old)
        *_, slot = [await store.defer(time.monotonic()) for _ in range(50)]
        assert slot.ticket is not None
        due, text = time.monotonic() + slot.told_s, old._control.signers[0].sign(slot.ticket)
        redis.pause()
        await until(lambda: is_away(old), "it has noticed")
        link, slow = store._link, SlowLink(old)
        store._link = slow  # type: ignore[assignment]
        redis.resume()
        redis.flush()
        async with fleet_of(redis.url, Limits(rate=10, burst=1), 1, wait=False) as (fresh,):
            await until(lambda: is_up(fresh), "it has begun a calendar", within_s=8)
            slow.is_fast = True
            await until_up([old, fresh], within_s=8)
            store._link = link
            await asyncio.sleep(due + 0.3 - time.monotonic())
            redis.command("HSET", CALENDAR, "tokens", "0")
            await admit(old, text)


async def test_processes_that_start_together_take_their_part_until_the_fleet_has_answered() -> None:
    gate = Gate(Limits(rate=40, burst=40), fleet=Fleet("redis://127.0.0.1:1"))
    gate.start(siblings=4)
    await until(lambda: is_away(gate), "it decides alone")
    snapshot = gate.snapshot()
    assert (snapshot.rate, snapshot.burst) == (10, 10)
    assert (snapshot.tokens or 0) < 5
    await gate.aclose()
