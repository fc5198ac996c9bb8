"""Limits per client of scope `fleet`: several gates, each as in a process of its own, on one real Redis."""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from herdgate import AddressRules, ClientLimits, ConfigurationError, Fleet, Gate, Limits
from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.clients import Client
from tests.herdgate.stores.redis.links import until
from tests.redis_servers import RedisServer, redis_cluster

ADDRESSES = AddressRules()
ANN, BOB = (ADDRESSES.client("192.0.2.1").identify(name) for name in ("ann", "bob"))
RATE = 1_000_000
OPEN = "{herdgate:default}:open:default:client:id:"


def over_fleet(**limits: Any) -> ClientLimits:
    return ClientLimits(**limits, scope="fleet")


@asynccontextmanager
async def gates(url: str, count: int = 3, *, fail: Any = "local_share", **limits: Any) -> AsyncIterator[Sequence[Gate]]:
    """Gates of one fleet that all know of each other, and have tokens."""
    made = [Gate(Limits(**{"rate": RATE, **limits}), fleet=Fleet(url, fail=fail)) for _ in range(count)]
    try:
        for gate in made:
            gate.start()
        await until(lambda: all(known(gate, count) for gate in made), "all know of each other")
        yield made
    finally:
        for gate in made:
            await gate.aclose()


def known(gate: Gate, count: int) -> bool:
    snapshot = gate.snapshot()
    return (
        snapshot.fleet is not None
        and snapshot.fleet.gateways == count
        and (snapshot.tokens or 0) >= max(1, (snapshot.rate or 0) / 10)
    )


async def decide(gate: Gate, client: Client = ANN, **arrival: Any) -> Admitted | Denied:
    return await gate.decide(Arrival(client, **arrival))


async def crowd(gates: Sequence[Gate], size: int, client: Client = ANN) -> tuple[list[Admitted], Counter[str]]:
    """Arrivals at all gates in turn, at the same time: those that are in, and why the others are not."""
    answers = await asyncio.gather(*(decide(gates[number % len(gates)], client) for number in range(size)))
    denied: Counter[str] = Counter(answer.reason for answer in answers if isinstance(answer, Denied))
    return [answer for answer in answers if isinstance(answer, Admitted)], denied


def places(redis: RedisServer, name: str = "ann") -> int:
    held: int = redis.command("ZCARD", OPEN + name)
    return held


async def denied(gate: Gate, client: Client = ANN, **arrival: Any) -> Denied:
    answer = await decide(gate, client, **arrival)
    assert isinstance(answer, Denied)
    return answer


async def test_exactly_the_burst_of_one_client_comes_in(redis: RedisServer) -> None:
    async with gates(redis.url, client=over_fleet(rate=0.01, burst=7)) as fleet:
        admitted, reasons = await crowd(fleet, 60)
        assert (len(admitted), reasons) == (7, {"client_rate": 53})
        assert len((await crowd(fleet, 7, BOB))[0]) == 7
        refusal = await denied(fleet[0])
        assert refusal.quota == (7, 700)
        assert 90 < (refusal.retry_s or 0) <= 110


async def test_exactly_the_cap_of_one_client_is_open(redis: RedisServer) -> None:
    async with gates(redis.url, client=over_fleet(open=3)) as fleet:
        admitted, reasons = await crowd(fleet, 100)
        assert (len(admitted), reasons) == (3, {"client_open": 97})
        assert 5 <= ((await denied(fleet[0])).retry_s or 0) <= 10
        admitted.pop().permit.release()
        await until(lambda: places(redis) == 2, "the place is free")
        again, _ = await crowd(fleet, 10)
        assert len(again) == 1


async def test_refusal_by_one_tier_charges_none(redis: RedisServer) -> None:
    own, address = over_fleet(rate=0.01, burst=2), over_fleet(rate=0.01, burst=5)
    async with gates(redis.url, client=own, address=address) as fleet:
        assert len((await crowd(fleet, 20, ANN))[0]) == 2
        assert len((await crowd(fleet, 20, BOB))[0]) == 2
        third = BOB._replace(key="id:third")
        assert len((await crowd(fleet, 20, third))[0]) == 1, "5 at the address, less 2 and 2"


async def test_tiers_of_this_process_and_of_the_fleet_charge_together_or_not_at_all(redis: RedisServer) -> None:
    own, address = over_fleet(rate=0.01, burst=2), ClientLimits(rate=0.01, burst=5)
    async with gates(redis.url, 1, client=own, address=address) as fleet:
        assert len((await crowd(fleet, 20, ANN))[0]) == 2, "18 were charged at the address, and given back"
        assert len((await crowd(fleet, 20, BOB))[0]) == 2
        assert len((await crowd(fleet, 20, BOB._replace(key="id:third")))[0]) == 1


async def test_arrival_refused_for_its_sockets_is_charged_and_takes_nothing_else(redis: RedisServer) -> None:
    async with gates(redis.url, 1, client=over_fleet(rate=0.01, burst=5, open=1)) as (gate,):
        _, reasons = await crowd([gate], 10)
        assert reasons == {"client_open": 4, "client_rate": 5}
        assert gate.snapshot().pending == 1


@pytest.mark.parametrize("limits", [{"max_open": 0}, {"rate": 0}, {"address": ClientLimits(open=0)}], ids=str)
async def test_place_of_an_arrival_that_is_refused_later_is_free_again(
    redis: RedisServer, limits: dict[str, Any]
) -> None:
    async with gates(redis.url, 1, client=over_fleet(open=1)) as (gate,):
        gate.set_limits(Limits(**{"rate": RATE, "client": over_fleet(open=1), **limits}))
        if "rate" in limits:
            await until(lambda: gate.snapshot().rate == 0, "the fleet has the rate")
        expected = "client_open" if "address" in limits else "full" if "max_open" in limits else "rate"
        for _ in range(3):
            assert (await denied(gate)).reason == expected
            await until(lambda: places(redis) == 0, "the place is free")


async def test_pre_flight_counts_and_takes_no_place(redis: RedisServer) -> None:
    async with gates(redis.url, 1, client=over_fleet(rate=0.01, burst=3, open=1)) as (gate,):
        assert isinstance(await gate.reserve(Arrival(ANN)), str)
        assert places(redis) == 0
        assert isinstance(await decide(gate), Admitted)
        full = await gate.reserve(Arrival(ANN))
        assert isinstance(full, Denied)
        assert full.reason == "client_open"
        over = await gate.reserve(Arrival(ANN))
        assert isinstance(over, Denied)
        assert over.reason == "client_rate"


async def test_draining_gate_gives_no_ticket_to_a_client_over_its_rate(redis: RedisServer) -> None:
    async with gates(redis.url, client=over_fleet(rate=0.01, burst=2, open=0)) as fleet:
        for gate in fleet:
            gate.drain()
        answers = [await denied(gate) for gate in fleet]
        assert [answer.reason for answer in answers] == ["draining"] * 3
        assert [bool(answer.ticket) for answer in answers] == [True, True, False]


async def test_due_ticket_is_not_charged_and_a_spent_one_is(redis: RedisServer) -> None:
    async with gates(redis.url, 2, rate=2, client=over_fleet(rate=0.01, burst=2)) as (one, two):
        strangers = map(ADDRESSES.client, (f"198.51.100.{number}" for number in range(100)))
        while isinstance(await decide(one, next(strangers)), Admitted):
            pass
        hint = (await denied(one)).ticket
        await until(lambda: (two.snapshot().tokens or 0) >= 1 and is_due(two, hint), "the ticket is due")
        assert isinstance(await decide(two, ticket=hint), Admitted)
        await decide(one, ticket=hint)  # spent: the second of two arrivals
        assert (await denied(two, ticket=hint)).reason == "client_rate"
        assert (await denied(two)).reason == "client_rate"


def is_due(gate: Gate, text: str | None) -> bool:
    ticket = gate._control.signers[0].read(text or "")
    return ticket is not None and gate._store.is_due(ticket, gate._clock())


async def test_exempt_and_unenforced_arrivals_are_counted(redis: RedisServer) -> None:
    async with gates(redis.url, 2, client=over_fleet(open=2)) as (one, two):
        exempt, unenforced = one.let_past(ANN, exempt=True), two.let_past(ANN, exempt=False)
        await until(lambda: places(redis) == 2, "both are counted")
        assert (await denied(one)).reason == "client_open"
        exempt.release()
        unenforced.release()
        await until(lambda: places(redis) == 0, "both are free")


async def test_cap_set_while_sockets_are_open_knows_of_them(redis: RedisServer) -> None:
    async with gates(redis.url, 2, client=over_fleet(rate=1_000)) as fleet:
        admitted, _ = await crowd(fleet, 4)
        for gate in fleet:
            gate.set_limits(Limits(rate=RATE, client=over_fleet(open=5)))
        await until(lambda: places(redis) == 4, "all are counted")
        assert len((await crowd(fleet, 10))[0]) == 1
        assert len(admitted) == 4


async def test_cap_set_while_an_arrival_is_asked_for_counts_it(redis: RedisServer) -> None:
    async with gates(redis.url, 1, client=over_fleet(rate=1_000)) as (gate,):
        asked = asyncio.create_task(decide(gate))
        await asyncio.sleep(0)
        gate.set_limits(Limits(rate=RATE, client=over_fleet(open=1)))
        assert isinstance(await asked, Admitted)
        await until(lambda: places(redis) == 1, "it is counted")
        assert (await denied(gate)).reason == "client_open"


async def test_gates_beside_each_other_count_apart_with_one_connection(redis: RedisServer) -> None:
    limits = Limits(rate=RATE, client=over_fleet(open=1))
    async with gates(redis.url, 1, client=over_fleet(open=1)) as (gate,):
        connections = len(redis.command("CLIENT", "LIST").splitlines())
        other = Gate(limits, route="other", beside=gate)
        answers = [type(await decide(each)) for each in (gate, other, gate, other)]
        assert answers == [Admitted, Admitted, Denied, Denied]
        assert len(redis.command("CLIENT", "LIST").splitlines()) == connections


async def test_client_without_such_limits_costs_no_call(redis: RedisServer) -> None:
    limits = {"client": ClientLimits(), "anonymous": over_fleet(open=1)}
    async with gates(redis.url, 1, **limits) as (gate,):
        before = gate.snapshot().fleet
        for _ in range(20):
            assert isinstance(await decide(gate), Admitted)
        after = gate.snapshot().fleet
        assert before is not None
        assert after is not None
        assert redis.calls() - 30 <= after.calls, "all but those of the start-up are the calendar's"
        assert redis.command("KEYS", "*:open:*") == []


async def test_crowd_of_any_size_costs_few_calls(redis: RedisServer) -> None:
    """Cases 5.14 and 5.19: 600 arrivals at once are a handful of calls, and nothing fails."""
    async with gates(redis.url, client=over_fleet(rate=1, burst=400, open=300)) as fleet:
        before = redis.calls()
        admitted, reasons = await crowd(fleet, 600)
        assert redis.calls() - before <= 60, "calendar and heartbeats included"
        assert (len(admitted), reasons) == (300, {"client_open": 100, "client_rate": 200})


async def test_clients_that_go_while_they_are_asked_for_leave_nothing(redis: RedisServer) -> None:
    """Cases 5.2 and 5.12: whenever they go, each answer reaches who asked for it, and every place is free again."""
    rng = random.Random(7)
    async with gates(redis.url, 1, client=over_fleet(open=1), anonymous=over_fleet(open=0)) as (gate,):
        clients = [ADDRESSES.client(f"192.0.2.{number % 200}") for number in range(1_000)]
        clients[::2] = [client.identify(f"{number}") for number, client in enumerate(clients[::2])]
        tasks = [asyncio.create_task(decide(gate, client)) for client in clients]
        for task in tasks:
            asyncio.get_running_loop().call_later(rng.random() / 4, task.cancel)
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        outcomes = Counter((client.identified, type(answer)) for client, answer in zip(clients, answers, strict=True))
        assert set(outcomes) == {
            *((identified, asyncio.CancelledError) for identified in (True, False)),
            *((True, Admitted), (False, Denied)),
        }
        for answer in answers:
            if isinstance(answer, Admitted):
                answer.permit.release()
        await until(lambda: redis.command("KEYS", "*:open:*") == [], "every place is free", within_s=1)
        assert gate.snapshot().pending == 0


async def test_places_are_renewed_while_their_sockets_are_open(redis: RedisServer) -> None:
    def score() -> float:
        (place,) = redis.command("ZRANGE", OPEN + "ann", 0, -1)
        return float(redis.command("ZSCORE", OPEN + "ann", place))

    async with gates(redis.url, 1, client=over_fleet(open=1)) as (gate,):
        await decide(gate)
        first = score()
        await until(lambda: score() != first, "renewed", within_s=5)
        assert 3_000_000 < score() - first < 5_000_000


async def test_places_that_redis_lost_are_put_back_and_said(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with gates(redis.url, 1, client=over_fleet(open=1)) as (gate,):
        await decide(gate)
        redis.command("DEL", OPEN + "ann")
        with caplog.at_level(logging.WARNING, "herdgate.redis"):
            await until(lambda: places(redis) == 1, "it is put back", within_s=5)
            await until(lambda: bool(caplog.messages), "it is said")
        assert caplog.messages == ["Redis had lost 1 sockets of clients; they are put back"]
        assert (await denied(gate)).reason == "client_open"


async def test_script_cache_that_is_empty_costs_no_verdict(redis: RedisServer) -> None:
    """Case 5.8."""
    async with gates(redis.url, 1, client=over_fleet(rate=0.01, burst=5)) as (gate,):
        for _ in range(5):
            redis.command("SCRIPT", "FLUSH")
            assert isinstance(await decide(gate), Admitted)
        assert (await denied(gate)).reason == "client_rate"
        fleet = gate.snapshot().fleet
        assert fleet is not None
        assert fleet.is_up


async def test_limits_hold_on_a_cluster() -> None:
    """Case 5.10."""
    with redis_cluster() as nodes:
        url = "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in nodes)
        async with gates(url, 2, client=over_fleet(rate=1, burst=5, open=2)) as fleet:
            _, reasons = await crowd(fleet, 20)
            assert reasons == {"client_open": 3, "client_rate": 15}


async def test_every_key_has_a_time_to_live(redis: RedisServer) -> None:
    """Case 5.7."""
    tier = over_fleet(rate=1, open=5)
    async with gates(redis.url, client=tier, address=tier, network=tier) as fleet:
        ipv6 = ADDRESSES.client("2001:db8::1").identify("ann")
        admitted, _ = await crowd(fleet, 12, ipv6)
        admitted.pop().permit.release()
        keys = redis.command("KEYS", "*:open:*") + redis.command("KEYS", "*:rate:*")
        assert len(keys) == 6
        assert all(0 < redis.command("TTL", key) <= 60 + 1 for key in keys)


def test_scope_fleet_without_a_fleet_is_an_error_that_says_so() -> None:
    message = 'anonymous.scope: got fleet; write "process", or make the gate part of a fleet: store="redis://host:6379"'
    limits = Limits(rate=1, anonymous=over_fleet(open=1))
    with pytest.raises(ConfigurationError) as raised:
        Gate(limits)
    assert str(raised.value) == message
    gate = Gate(Limits(rate=1))
    with pytest.raises(ConfigurationError) as raised:
        gate.set_limits(limits)
    assert str(raised.value) == message
