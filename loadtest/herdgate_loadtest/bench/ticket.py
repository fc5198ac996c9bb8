"""One firm ticket is shown at twenty gates in the same instant: it is one admission.

The bucket is empty then, and all refill belongs to the firm slot: whoever else is admitted, is so by the ticket.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from herdgate import Gate, Limits
from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.clients import AddressRules
from herdgate.fleet import Fleet
from herdgate_loadtest.bench.finding import Finding
from herdgate_loadtest.bench.gates import fallen_out, open_gates
from herdgate_loadtest.errors import CrowdError
from herdgate_loadtest.servers.redis import redis_server

__all__ = ["measure"]

_GATES = 20
_LIMITS = Limits(rate=1.0)
_NOT_EARLY_S = 0.02
_LATEST = 100
_CLIENT = AddressRules().client("10.1.0.1")


@dataclass(frozen=True, slots=True)
class _Plan:
    tickets: int


_FULL, _FAST = _Plan(5), _Plan(1)


async def measure(*, fast: bool) -> Finding:
    """`ticket_admissions`: how many gates admit it; of several tickets the worst."""
    plan = _FAST if fast else _FULL
    counts: list[int] = []
    reasons: list[str] = []
    with redis_server() as redis:
        async with open_gates(_GATES, _LIMITS, Fleet(redis.url, "ticket")) as gates:
            for _ in range(plan.tickets):
                counts.append(await _show(gates))
                reasons += fallen_out(gates)
    return Finding(
        {"ticket_admissions": max(counts, key=lambda count: abs(count - 1))}, reasons, {"tickets": len(counts)}
    )


async def _show(gates: Sequence[Gate]) -> int:
    """How many of the gates admit a new ticket."""
    promised = await _firm_slot(gates[0])
    await asyncio.sleep((promised.retry_s or 0.0) + _NOT_EARLY_S)
    arrival = Arrival(_CLIENT, promised.ticket)
    decided = await asyncio.gather(*(gate.decide(arrival) for gate in gates))
    admitted = [verdict for verdict in decided if isinstance(verdict, Admitted)]
    for verdict in admitted:
        verdict.permit.release()
    return len(admitted)


async def _firm_slot(gate: Gate) -> Denied:
    """A firm slot that is not due yet, beside an empty bucket."""
    (await _admitted(gate)).permit.release()
    promised = await gate.refuse("auth_busy")  # the admission is undone for a firm slot: its token is in the bucket
    (await _admitted(gate)).permit.release()
    return promised


async def _admitted(gate: Gate) -> Admitted:
    for _ in range(_LATEST):
        decided = await gate.decide(Arrival(_CLIENT))
        if isinstance(decided, Admitted):
            return decided
        await asyncio.sleep(0.1)
    raise CrowdError("a gate admitted nobody for ten seconds: run it again")
