"""Gateways that drain under a crowd: three of them, one rate.

rolling    one after the other is told to drain, ended and started again
called     all three are told at once, with successors there; two wait their turn
signalled  all three get SIGTERM at once, with successors there
early      a balancer sends on for a while, then cuts what is left; ELBv2 says `draining` from the beginning
late       the same, and nothing says so: SIGTERM comes behind the cut
"""

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import uvloop

from herdgate_loadtest.bench.drain.gateways import DrainedGateway, DrainSettings
from herdgate_loadtest.bench.drain.stage import Stage, crowd_of, staged
from herdgate_loadtest.bench.figures import Bound, at_least, at_most
from herdgate_loadtest.bench.sides.outcome import Outcome
from herdgate_loadtest.engine import Attempt, Crowd
from herdgate_loadtest.engine.record import percentile

__all__ = ["measure"]

_LATEST_S = 120.0

_BOUNDS = {
    "rolling_without_socket_p99_s": at_most(1, 0.3),
    "rolling_tries_per_client": at_most(1, 1),
    "rolling_denied": Bound(0, 0, "0"),
    "rolling_failed": Bound(0, 0, "0"),
    "rolling_peak_over_rate": at_most(1.05, 0.6),
    "called_peak_over_rate": at_most(1.05, 0.6),
    "signalled_peak_over_rate": at_most(1.05, 0.6),
    "called_back_over_ideal": at_most(1.1, 1.03),
    "signalled_back_over_ideal": at_most(1.1, 1.03),
    "over_deadline_s": at_most(0, 0),
    "early_moved": at_least(0.99, 1),
    "late_is_said": Bound(1, 1, "1"),
}


@dataclass(frozen=True, slots=True)
class _Plan:
    clients: int
    rate: float
    rolls: int
    sends_s: float
    cuts_s: float


_FULL, _FAST = _Plan(3_000, 200.0, 3, 10.0, 16.0), _Plan(120, 100.0, 1, 1.0, 7.0)


def measure(*, fast: bool) -> Outcome:
    """Seconds, tries and shares."""
    plan, outcome = _FAST if fast else _FULL, Outcome(_BOUNDS)
    needed_s = 2 * plan.clients / plan.rate  # at half of the rate
    drain = DrainSettings(sigterm_s=1.2 * needed_s + 5, call_s=1.5 * needed_s + 5, sign_s=plan.cuts_s)
    with staged(plan.rate, drain) as stage, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_Drains(stage, plan, drain, outcome).run())
    return outcome


class _Drains:
    def __init__(self, stage: Stage, plan: _Plan, drain: DrainSettings, outcome: Outcome) -> None:
        self._stage, self._plan, self._drain, self._outcome = stage, plan, drain, outcome
        self._waits: list[float] = []

    async def run(self) -> None:
        """All of them, one after the other, with one crowd."""
        stage = self._stage
        old, new = stage.gateways[:3], stage.gateways[3:]
        await stage.start(old)
        async with crowd_of(stage, self._plan.clients, self._plan.rate, self._hear) as crowd:
            for gateway in old[: self._plan.rolls]:
                await self._roll(crowd, gateway)
            await self._at_once(crowd, "called", old, new)
            await self._at_once(crowd, "signalled", new, old)
            await self._cut(crowd, old[0], is_told=True)
            await self._cut(crowd, old[1], is_told=False)

    def _hear(self, attempt: Attempt) -> None:
        if attempt.wait_s is not None:
            self._waits.append(attempt.wait_s)

    async def _roll(self, crowd: Crowd, gateway: DrainedGateway) -> None:
        began = self._begin(crowd)
        gateway.drain()
        await self._end(gateway, self._drain.call_s)
        await self._recovered(crowd)
        await self._stage.start([gateway])
        self._tell(crowd, "rolling", began)

    async def _at_once(
        self, crowd: Crowd, what: str, gateways: Sequence[DrainedGateway], successors: Sequence[DrainedGateway]
    ) -> None:
        """All of these end, and the successors, who are ready by then, take their clients."""
        await self._stage.start(successors)
        began = self._begin(crowd)
        for gateway in gateways:
            if what == "called":
                gateway.drain()
            else:
                gateway.terminate()
        if what == "called":
            await asyncio.gather(*(self._end(gateway, self._drain.call_s) for gateway in gateways))
        else:
            await asyncio.gather(*(self._ended(gateway, self._drain.sigterm_s) for gateway in gateways))
        await self._recovered(crowd)
        self._tell(crowd, what, began)
        back_s = crowd.record(rate=self._plan.rate, burst=0).t100_s
        self._outcome.add(f"{what}_back_s", back_s)
        self._outcome.add(f"{what}_back_over_ideal", back_s / (2 * self._plan.clients / self._plan.rate))

    async def _cut(self, crowd: Crowd, gateway: DrainedGateway, *, is_told: bool) -> None:
        """The balancer cuts, and SIGTERM comes behind it."""
        plan, stage = self._plan, self._stage
        self._begin(crowd)
        there = await stage.open_at(gateway)
        await stage.deregister(gateway, plan.sends_s, plan.cuts_s, is_told=is_told)
        await crowd.hold(plan.cuts_s + 0.5)
        cut = await stage.cut_at(gateway)
        gateway.terminate()
        await stage.wait(lambda: not gateway.runs, "it has ended", _LATEST_S)
        steps = [step.what for step in gateway.steps()]
        if is_told:
            self._outcome.add("early_clients", there)
            self._outcome.add("early_moved", 1 - cut / there)
        else:
            self._outcome.add("late_clients", there)
            self._outcome.add("late_is_said", float(any("came too late" in step for step in steps)))
        await self._recovered(crowd)

    def _begin(self, crowd: Crowd) -> float:
        began = crowd.cut("observe")
        self._waits.clear()
        return began

    async def _end(self, gateway: DrainedGateway, deadline_s: float) -> None:
        """Wait until it is drained, as `herdgate drain --wait` does, and end it."""
        await self._stage.wait(gateway.is_drained, "it is drained", deadline_s + _LATEST_S)
        gateway.terminate()
        await self._ended(gateway, deadline_s)

    async def _ended(self, gateway: DrainedGateway, deadline_s: float) -> None:
        await self._stage.wait(lambda: not gateway.runs, "it has ended", deadline_s + _LATEST_S)
        drained = next((step.since_s for step in gateway.steps() if step.what == "drained"), math.inf)
        self._outcome.add("drain_s", drained)
        self._worst("over_deadline_s", drained - deadline_s)

    async def _recovered(self, crowd: Crowd) -> None:
        await self._stage.wait(lambda: crowd.snapshot().open == self._plan.clients, "everybody is in", _LATEST_S)
        await crowd.hold(1.0)  # admissions have settled

    def _worst(self, name: str, value: float) -> None:
        known = self._outcome.values.setdefault(name, [])
        known[:] = [max([value, *known])]

    def _tell(self, crowd: Crowd, what: str, began: float) -> None:
        record = crowd.record(rate=self._plan.rate, burst=0)
        self._outcome.spoiled(record.reasons)
        peak = max(Counter(int(at - began) for at in self._admissions(crowd)).values(), default=0)
        self._worst(f"{what}_peak_over_rate", peak / self._plan.rate)
        self._worst(f"{what}_without_socket_p99_s", percentile(sorted(self._waits), 99))
        self._worst(f"{what}_tries_per_client", record.attempts_per_client)
        self._worst(f"{what}_denied", record.denied)
        self._worst(f"{what}_failed", record.failed)
        self._outcome.add(f"{what}_moved", record.clients)

    @staticmethod
    def _admissions(crowd: Crowd) -> Sequence[float]:
        recorded = crowd.recorded()
        return [recorded.began + moment for moment in recorded.admissions_s]
