"""Workers that are lost under a crowd whose connections they own.

crash   SIGKILL: the crowd obeys, and probes ask when each shard is served again
stop    SIGTERM: the crowd is prompt, so that a client is without its socket for as long as the fleet needs
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from herdgate_loadtest.bench.crowds import crowd_at, until
from herdgate_loadtest.bench.routing.probes import reached
from herdgate_loadtest.bench.sides.outcome import Outcome
from herdgate_loadtest.demo.gateway import burst_of
from herdgate_loadtest.engine import Attempt, Crowd, Record
from herdgate_loadtest.engine.record import percentile
from herdgate_loadtest.errors import CrowdError
from herdgate_loadtest.owned.fleet import OwnedFleet
from herdgate_loadtest.owned.gateway import PROBE
from herdgate_loadtest.owned.worker import OwnedWorker
from herdgate_loadtest.servers.children import HOST

__all__ = ["Losses"]

_LATEST_S = 60.0
_QUIET_S = 1.5  # the bucket fills up, and admissions have settled


@dataclass(frozen=True, slots=True)
class Losses:
    """Of one run.

    Attributes:
        clients: of each crowd.
        rate: admissions per second of the fleet.
        slots: of each kind of loss.
        revives: a worker that was lost is started again, and has its part of the shards before the next is lost.
    """

    fleet: OwnedFleet
    outcome: Outcome
    clients: int
    rate: float
    slots: int
    revives: bool

    async def crashes(self) -> None:
        """`crash_reachable_s`, `crash_back_s`, and what goes with them."""
        async with self._crowd("obey", []) as crowd:
            for _ in range(self.slots):
                await self._revive(await self._crash(crowd), crowd)

    async def stops(self) -> None:
        """`graceful_p99_s`, and what goes with it."""
        waits: list[float] = []
        async with self._crowd("prompt", waits) as crowd:
            for _ in range(self.slots):
                await self._revive(await self._stop(crowd, waits), crowd)

    async def _crash(self, crowd: Crowd) -> OwnedWorker:
        worker, lost = self._largest()
        urls = [f"ws://{HOST}:{gateway.port}/?id={{id}}" for gateway in self.fleet.gateways]
        crowd.cut("observe")
        moment = worker.crash()
        served, _ = await asyncio.gather(
            reached(urls, lost, PROBE, _LATEST_S), crowd.recover(deadline_s=_LATEST_S, expected=1)
        )
        record = self._record(crowd)
        whole = lost <= served.keys()
        self.outcome.add("crash_reachable_s", max(served.values()) - moment if whole else math.inf)
        self.outcome.add("crash_back_s", record.t100_s - record.ideal_s)
        self._tell("crash", record)
        return worker

    async def _stop(self, crowd: Crowd, waits: list[float]) -> OwnedWorker:
        worker, _ = self._largest()
        waits.clear()
        crowd.cut("observe")
        worker.stop()
        took_s = await self._wait(worker.is_over, f"{worker.name} has stopped")
        await crowd.recover(deadline_s=_LATEST_S, expected=1)
        record = self._record(crowd)
        back = record.clients and math.isfinite(record.t100_s)
        self.outcome.add("graceful_p99_s", percentile(sorted(waits), 99) if back else math.inf)
        self.outcome.add("graceful_p50_s", percentile(sorted(waits), 50) if back else math.inf)
        self.outcome.add("graceful_stop_s", took_s)
        self._tell("graceful", record)
        return worker

    def _tell(self, what: str, record: Record) -> None:
        self.outcome.add(f"{what}_clients", record.clients)
        self.outcome.add(f"{what}_tries_per_client", record.attempts_per_client)
        self.outcome.add(f"{what}_denied", record.denied)
        self.outcome.add(f"{what}_failed", record.failed)
        self.outcome.add(f"{what}_peak_admitted_per_s", record.peak_admitted_per_s)

    def _record(self, crowd: Crowd) -> Record:
        record = crowd.record(rate=self.rate, burst=burst_of(self.rate))
        self.outcome.spoiled(record.reasons)
        return record

    async def _revive(self, worker: OwnedWorker, crowd: Crowd) -> None:
        """Have it back, and everybody in."""
        if not self.revives:
            return
        await self._wait(worker.is_over, f"{worker.name} has ended")
        worker.start()
        await asyncio.to_thread(self.fleet.wait_until_settled)
        await self._wait(lambda: crowd.snapshot().open == self.clients, "everybody is in")
        await crowd.hold(_QUIET_S)

    async def _wait(self, condition: Callable[[], bool], what: str) -> float:
        """Seconds that it took."""
        took_s = await until(condition, _LATEST_S)
        if took_s is None:
            raise CrowdError(f"after {_LATEST_S:g} s it is still not so that {what}: run it again")
        return took_s

    def _largest(self) -> tuple[OwnedWorker, frozenset[int]]:
        """The worker that owns most shards, and these."""
        name, shards = max(self.fleet.owners().items(), key=lambda owned: len(owned[1]))
        return self.fleet.workers[name], shards

    @asynccontextmanager
    async def _crowd(self, behaviour: str, waits: list[float]) -> AsyncIterator[Crowd]:
        """All of it is up. `waits`: gets the seconds that each client was without a socket, as it comes back."""

        def hear(attempt: Attempt) -> None:
            if attempt.wait_s is not None:
                waits.append(attempt.wait_s)

        async with crowd_at(self.fleet.gateways, {behaviour: self.clients}, observe=hear) as crowd:
            await crowd.bring_up(rate=self.rate, deadline_s=self.clients / self.rate + _LATEST_S)
            await crowd.hold(_QUIET_S)
            yield crowd
