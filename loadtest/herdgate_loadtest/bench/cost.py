"""What a decision costs the process that makes it: CPU time with the fleet's store, less that with the store in memory.

Theory of operation. A crowd comes at a gate at a fixed pace, a task an arrival, as under a server; every other arrival
shows the ticket it was given before. Slots with either store take turns, so that whatever else runs disturbs both. A
gate is made for each slot and ended after it: no heartbeat of one is counted in the slot of another. The CPU time is
that of this process; Redis is another one.
"""

import asyncio
import gc
import statistics
import time
from collections import deque
from dataclasses import dataclass
from itertools import cycle

from herdgate import Gate, Limits
from herdgate.core.answers import Arrival, Denied
from herdgate.core.clients import AddressRules, Client
from herdgate.fleet import Fleet
from herdgate_loadtest.bench.finding import Finding
from herdgate_loadtest.bench.gates import fallen_out, open_gates
from herdgate_loadtest.bench.watch import watched
from herdgate_loadtest.servers.redis import redis_server

__all__ = ["measure"]

_LIMITS = Limits(rate=500)
_WARM_S = 0.3
_TICK_S = 0.001
_LOOK_S = 0.05
_LEAST_KEPT = 0.95
_CLIENTS = [AddressRules().client(f"10.1.{number // 250}.{number % 250}") for number in range(5_000)]


@dataclass(frozen=True, slots=True)
class _Plan:
    pairs: int
    slot_s: float
    paces: tuple[float, ...]  # the first one is the figure's: a crowd of 10,000 that reaches 3 gateways within a second


_FULL, _FAST = _Plan(10, 1.5, (3_333, 1_000)), _Plan(2, 0.3, (1_000,))


@dataclass(frozen=True, slots=True)
class _Slot:
    cpu_s: float
    decisions: int
    kept: float  # share of the pace
    reasons: list[str]


async def measure(*, fast: bool) -> Finding:
    """`cpu_us_per_decision`: median over pairs of slots."""
    plan = _FAST if fast else _FULL
    reasons: list[str] = []
    medians: dict[float, float] = {}
    with redis_server() as redis:
        for pace in plan.paces:
            costs = []
            for number in range(plan.pairs):
                here, there = await _pair(plan, pace, Fleet(redis.url, f"cost-{pace:g}-{number}"))
                costs.append((there.cpu_s / there.decisions - here.cpu_s / here.decisions) * 1e6)
                reasons += [*there.reasons, *_behind(pace, here), *_behind(pace, there)]
            medians[pace] = statistics.median(costs)
    details = {f"cpu_us_per_decision_at_{pace:g}_per_s": median for pace, median in medians.items()}
    return Finding({"cpu_us_per_decision": medians[plan.paces[0]]}, list(dict.fromkeys(reasons)), details)


async def _pair(plan: _Plan, pace: float, fleet: Fleet) -> tuple[_Slot, _Slot]:
    here = await _slot(Gate(_LIMITS), pace, plan.slot_s)
    async with open_gates(1, _LIMITS, fleet) as gates:
        there = await _slot(gates[0], pace, plan.slot_s)
    return here, there


async def _slot(gate: Gate, pace: float, seconds: float) -> _Slot:
    async def is_alone() -> bool:
        return gate.is_shared and bool(fallen_out([gate]))

    crowd = _Paced(gate, pace)
    await crowd.come(_WARM_S)
    gc.collect()
    async with watched(is_alone, _LOOK_S) as reasons:
        cpu_s, decisions = time.process_time(), crowd.decisions
        await crowd.come(seconds)
        cpu_s, decisions = time.process_time() - cpu_s, crowd.decisions - decisions
    await crowd.end()
    return _Slot(cpu_s, max(1, decisions), decisions / (pace * seconds), reasons)


def _behind(pace: float, slot: _Slot) -> list[str]:
    if slot.kept >= _LEAST_KEPT:
        return []
    return [f"the crowd came late: this machine has no time for {pace:g} arrivals a second"]


class _Paced:
    """Arrivals at one gate.

    Attributes:
        decisions: made so far.
    """

    def __init__(self, gate: Gate, pace: float) -> None:
        self._gate, self._pace = gate, pace
        self._clients = cycle(_CLIENTS)
        self._shown: deque[str | None] = deque(maxlen=len(_CLIENTS))
        self._arriving: set[asyncio.Task[None]] = set()
        self.decisions = 0

    async def come(self, seconds: float) -> None:
        """So many seconds of arrivals."""
        began, sent = time.monotonic(), 0
        while (elapsed := time.monotonic() - began) < seconds:
            due = int(elapsed * self._pace)
            for number in range(sent, due):
                self._send(self._shown.popleft() if number % 2 and self._shown else None)
            sent = due
            await asyncio.sleep(_TICK_S)

    async def end(self) -> None:
        """Wait for those on the way."""
        await asyncio.gather(*self._arriving)

    def _send(self, ticket: str | None) -> None:
        task = asyncio.get_running_loop().create_task(self._arrive(next(self._clients), ticket))
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)

    async def _arrive(self, client: Client, ticket: str | None) -> None:
        decided = await self._gate.decide(Arrival(client, ticket))
        self.decisions += 1
        if isinstance(decided, Denied):
            self._shown.append(decided.ticket)
        else:
            decided.permit.release()
