"""Gates of several processes beside one parent: one rate, one order, and what holds when the parent is gone."""

import asyncio
import time

from herdgate import Gate, Limits
from herdgate.core.answers import Admitted, Denied
from tests.herdgate.stores.parent.calendars import calendar_of
from tests.herdgate.stores.redis.fleets import admit, come, fleet_of, hint_of, until


async def test_two_gates_have_one_rate() -> None:
    limits = Limits(rate=100, burst=20)
    async with calendar_of(limits) as server, fleet_of(server.url, limits, 2) as gates:
        began, admitted = time.monotonic(), 0
        while time.monotonic() < began + 1.5:
            verdicts = await asyncio.gather(*(come(gate) for gate in gates for _ in range(20)))
            admitted += sum(isinstance(verdict, Admitted) for verdict in verdicts)
        took_s = time.monotonic() - began
        assert admitted <= 20 + 100 * took_s + 1
        assert admitted >= 20 + 100 * took_s - 20, "and all of it is used"


async def test_ticket_of_one_gate_is_kept_at_the_other_and_only_once() -> None:
    limits = Limits(rate=4, burst=1)
    async with calendar_of(limits) as server, fleet_of(server.url, limits, 2) as (one, two):
        hint = await hint_of(one)
        await asyncio.sleep((hint.retry_s or 0) + 0.01)
        permit = (await admit(two, hint.ticket)).permit
        assert isinstance(await come(one, hint.ticket), Denied)
        permit.release()


async def test_permits_of_all_gates_are_told_to_each() -> None:
    limits = Limits(rate=100)
    async with calendar_of(limits) as server, fleet_of(server.url, limits, 2) as (one, two):
        permits = [(await admit(gate)).permit for gate in (one, two, two)]
        permits[0].opened()
        await until(lambda: _counts(one) == _counts(two) == (1, 2), "both know of all")
        for permit in permits:
            permit.release()
        await until(lambda: _counts(one) == (0, 0), "and that they are gone")


async def test_rate_and_fraction_set_at_one_gate_hold_for_all() -> None:
    limits = Limits(rate=100)
    async with calendar_of(limits) as server, fleet_of(server.url, limits, 2) as (one, two):
        one.set_rate(7)
        one.set_admit_fraction(0)
        await until(lambda: two.snapshot().rate == 7, "the rate is known")
        verdict = await come(two)
        assert isinstance(verdict, Denied)
        assert verdict.reason == "shed"


async def test_arrivals_go_to_the_worker_with_the_fewest_sockets_of_all_gates() -> None:
    limits = Limits(rate=100)
    async with calendar_of(limits) as server, fleet_of(server.url, limits, 2) as (one, two):
        for gate in (one, two):
            gate.set_workers(lambda: ["a", "b"])
        permits = [(await admit(gate)).permit for gate in (one, two, one, two)]
        assert [permit.worker for permit in permits] == ["a", "b", "a", "b"]
        for permit in permits:
            permit.release()


async def test_without_the_parent_each_gate_admits_its_share_and_keeps_its_sockets() -> None:
    limits = Limits(rate=100, burst=1)
    async with calendar_of(limits) as server, fleet_of(server.url, limits, 2) as gates:
        permit = (await admit(gates[0])).permit
        await server.aclose()
        began, admitted = time.monotonic(), 0
        while time.monotonic() < began + 1:
            verdicts = await asyncio.gather(*(come(gate) for gate in gates for _ in range(5)))
            admitted += sum(isinstance(verdict, Admitted) for verdict in verdicts)
            await asyncio.sleep(0.01)
        assert 50 <= admitted <= 100 * (time.monotonic() - began) + 3
        assert not any(_is_up(gate) for gate in gates)
        permit.release()


def _counts(gate: Gate) -> tuple[int, int]:
    fleet = gate.snapshot().fleet
    assert fleet is not None
    return fleet.open, fleet.pending


def _is_up(gate: Gate) -> bool:
    fleet = gate.snapshot().fleet
    return fleet is not None and fleet.is_up
