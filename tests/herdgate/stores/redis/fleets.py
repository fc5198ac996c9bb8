"""Gates of a fleet in one loop, on a real Redis: as many processes as the test likes, without their start-up.

async with fleet_of(redis.url, Limits(rate=100), 3) as gates:
    ... await admit(gates[0])
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from herdgate import Fleet, Gate, Limits
from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.clients import LOCAL, Client
from tests.wire import eventually

__all__ = ["admit", "come", "firm_slot_of", "fleet_of", "hint_of", "refuse", "until", "until_up"]


@asynccontextmanager
async def fleet_of(
    url: str, limits: Limits, count: int, *, wait: bool = True, settings: dict[str, Any] | None = None, **gate: Any
) -> AsyncIterator[list[Gate]]:
    """Gates that have joined their fleet."""
    gates = [Gate(limits, fleet=Fleet(url, **(settings or {})), **gate) for _ in range(count)]
    for each in gates:
        each.start()
    try:
        if wait:
            await until_up(gates)
        yield gates
    finally:
        for each in gates:
            await each.aclose()


async def until(condition: Callable[[], bool], what: str, *, within_s: float = 8.0) -> None:
    """Poll until it holds."""

    async def holds() -> bool:
        return condition()

    await eventually(holds, what, within_s=within_s)


async def until_up(gates: list[Gate], *, within_s: float = 8.0) -> None:
    """Wait until every gate knows of all of them."""

    def are_up() -> bool:
        fleets = [gate.snapshot().fleet for gate in gates]
        return all(fleet and fleet.is_up and fleet.gateways == len(gates) for fleet in fleets)

    await until(are_up, "the fleet is complete", within_s=within_s)


async def come(
    gate: Gate, ticket: str | None = None, client: Client = LOCAL, klass: str | None = None
) -> Admitted | Denied:
    """One arrival."""
    async with asyncio.timeout(5):
        return await gate.decide(Arrival(client, ticket, klass=klass))


async def admit(gate: Gate, ticket: str | None = None, client: Client = LOCAL) -> Admitted:
    """One that comes in."""
    verdict = await come(gate, ticket, client)
    assert isinstance(verdict, Admitted), verdict
    return verdict


async def refuse(gate: Gate, ticket: str | None = None, client: Client = LOCAL) -> Denied:
    """One that does not."""
    verdict = await come(gate, ticket, client)
    assert isinstance(verdict, Denied), verdict
    return verdict


async def hint_of(gate: Gate) -> Denied:
    """Take what tokens there are, and be told when to come back."""
    while isinstance(verdict := await come(gate), Admitted):
        pass
    return verdict


async def firm_slot_of(gate: Gate) -> Denied:
    """Come back when told, and find that others were there first."""
    hint = await hint_of(gate)
    await asyncio.sleep((hint.retry_s or 0) + 0.005)
    await hint_of(gate)
    verdict = await refuse(gate, hint.ticket)
    assert verdict.firm
    return verdict
