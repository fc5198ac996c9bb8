"""Workers with a capacity behind several gates: no instant may see more permits than that.

Gates, arrivals and permits are in one process, so that what is held at any instant is known exactly. Clients stay for
a random time; some leave before they are answered.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from herdgate import Gate, Limits
from herdgate.core.answers import Admitted, Arrival
from herdgate.core.clients import AddressRules
from herdgate.fleet import Fleet
from herdgate.stores.memory import MemoryStore
from herdgate_loadtest.bench.finding import Finding
from herdgate_loadtest.bench.gates import open_gates, watched
from herdgate_loadtest.bench.redis import RedisServer, redis_server

__all__ = ["measure"]

_GATES = 3
_CAPACITY = {"worker-1": 200, "worker-2": 100}
_LIMITS = Limits(rate=2_000)
_FLEET = "capacity"
_LEARNING_S = 10.0  # in which a calendar found empty admits half
_ARRIVALS_PER_S = 1_000
_STAY_S = (0.2, 1.0)
_LEAVE_SHARE, _LEAVE_S = 0.1, (0.0, 0.05)
_TICK_S = 0.005
_LEAST_USED = 0.9


@dataclass(frozen=True, slots=True)
class _Plan:
    seconds: float


_FULL, _FAST = _Plan(15.0), _Plan(1.5)


async def measure(*, fast: bool) -> Finding:
    """`over_capacity`: permits above a worker's capacity at the worst instant."""
    plan = _FAST if fast else _FULL
    with redis_server() as redis:
        _report(redis)
        async with open_gates(_GATES, _LIMITS, Fleet(redis.url, _FLEET)) as gates:
            for gate in gates:
                _name_workers(gate)
            crowd = _Crowd(gates)
            async with watched(gates) as reasons:
                await crowd.come(_LEARNING_S + plan.seconds)
            await crowd.end()
    peaks = {name: crowd.most[name] for name in _CAPACITY}
    over = max(peaks[name] - capacity for name, capacity in _CAPACITY.items())
    if any(peaks[name] < _LEAST_USED * capacity for name, capacity in _CAPACITY.items()):
        reasons.append("no worker was ever full: this machine has no time for the crowd")
    return Finding({"over_capacity": max(0, over)}, reasons, {f"most_at_{name}": peak for name, peak in peaks.items()})


def _report(redis: RedisServer) -> None:
    """What workers would report."""
    for name, capacity in _CAPACITY.items():
        redis.command("HSET", f"{{herdgate:{_FLEET}}}:worker:{name}", "capacity", capacity, "state", "UP")


def _name_workers(gate: Gate) -> None:
    assert not isinstance(gate._store, MemoryStore)
    gate._store.workers = lambda: tuple(_CAPACITY)


class _Crowd:
    """Arrivals at random gates, and what they hold.

    Attributes:
        most: permits of each worker at its fullest.
    """

    def __init__(self, gates: Sequence[Gate]) -> None:
        self._gates = gates
        self._rng = random.Random(1)
        self._client = AddressRules().client("10.1.0.1")
        self._held: Counter[str | None] = Counter()
        self._visits: set[asyncio.Task[None]] = set()
        self.most: Counter[str | None] = Counter()

    async def come(self, seconds: float) -> None:
        """So many seconds of arrivals."""
        began, sent = time.monotonic(), 0
        while (elapsed := time.monotonic() - began) < seconds:
            due = int(elapsed * _ARRIVALS_PER_S)
            for _ in range(due - sent):
                self._send()
            sent = due
            await asyncio.sleep(_TICK_S)

    async def end(self) -> None:
        """Wait until all have left."""
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*self._visits, return_exceptions=True)

    def _send(self) -> None:
        loop = asyncio.get_running_loop()
        visit = loop.create_task(self._visit(self._rng.choice(self._gates)))
        self._visits.add(visit)
        visit.add_done_callback(self._visits.discard)
        if self._rng.random() < _LEAVE_SHARE:
            loop.call_later(self._rng.uniform(*_LEAVE_S), visit.cancel)

    async def _visit(self, gate: Gate) -> None:
        decided = await gate.decide(Arrival(self._client))
        if not isinstance(decided, Admitted):
            return
        worker = decided.permit.worker
        self._held[worker] += 1
        self.most[worker] = max(self.most[worker], self._held[worker])
        try:
            await asyncio.sleep(self._rng.uniform(*_STAY_S))
        finally:
            self._held[worker] -= 1
            decided.permit.release()
