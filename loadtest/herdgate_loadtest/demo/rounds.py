"""One round of the demo: bring a crowd up, cut it off in one instant, let it come back, compare both sides' counts."""

import math
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from herdgate_loadtest.demo.fleet import Fleet
from herdgate_loadtest.demo.gateway import Gateway, burst_of
from herdgate_loadtest.demo.watched import beside, watched
from herdgate_loadtest.engine import Crowd, CrowdConfig, Record, ServerCounts, loopback_sources

__all__ = ["Plan", "Round", "busiest_beyond_burst", "permits_left", "play_round"]

_LATEST_S = 60.0  # beyond the ideal time, for a round to end
_SETTLE_S = 30.0
_CLIENTS_PER_SOURCE = 5_000
_MOST_SOURCES = 65_536


@dataclass(frozen=True, slots=True)
class Plan:
    """What the demo plays.

    Attributes:
        herd: clients.
        rate: admissions per second; the burst is a twentieth of a second of it.
    """

    herd: int
    rate: float

    @property
    def burst(self) -> float:
        """Admissions at once."""
        return burst_of(self.rate)

    @property
    def ideal_s(self) -> float:
        """Seconds in which nobody can beat the rate."""
        return max(0.0, (self.herd - self.burst) / self.rate)

    @property
    def refill_s(self) -> float:
        """Seconds in which the bucket is full again."""
        return self.burst / self.rate + 0.5

    @property
    def latest_s(self) -> float:
        """Seconds that a phase has at most."""
        return self.ideal_s + _LATEST_S

    def crowd(self, *urls: str) -> Crowd:
        """Clients that do as they are told, and go on at the next URL when they lose touch."""
        sources = loopback_sources(min(_MOST_SOURCES, 1 + self.herd // _CLIENTS_PER_SOURCE))
        return Crowd(CrowdConfig(urls, clients={"obey": self.herd}, sources=sources, failover=True))


@dataclass(frozen=True, slots=True)
class Round:
    """What came of one round.

    Attributes:
        record: the crowd's result record.
        beyond_burst: see `busiest_beyond_burst`.
    """

    record: Record
    beyond_burst: float


Watch = Callable[[str, Crowd], Coroutine[Any, Any, None]]
"""Called with the name of each phase as it begins; runs beside it until cancelled."""


async def play_round(plan: Plan, fleet: Fleet, watch: Watch) -> Round:
    """Play one round on a fresh crowd.

    Raises:
        LoadtestError: the crowd did not come up, or a process of the fleet is gone.
    """
    return await watched(_play(plan, fleet, watch), fleet.watch())


def busiest_beyond_burst(admitted_at: Sequence[float], began: float, burst: float) -> float:
    """Admissions in the busiest second since `began`, the burst taken off: a gate that keeps its rate is within it.

    Off any second, not only the first: tokens that clients left unused for being late are there for the next ones.
    """
    seconds = Counter(math.floor(moment - began) for moment in admitted_at)
    return max(0.0, max(seconds.values(), default=0) - burst)


async def _play(plan: Plan, fleet: Fleet, watch: Watch) -> Round:
    await fleet.serves()
    async with plan.crowd(fleet.gateway.url) as crowd:
        await beside(watch("connecting", crowd), crowd.bring_up(rate=plan.rate, deadline_s=plan.latest_s))
        await beside(watch("connected", crowd), crowd.hold(plan.refill_s))
        before = await fleet.gateway.counts()
        began = crowd.cut("reset")
        await beside(watch("cut off", crowd), crowd.recover(deadline_s=plan.latest_s))
        after, admitted_at = await fleet.gateway.counts(), await fleet.admissions(began)
        await crowd.close()
        counts = ServerCounts(
            admitted=after.admitted - before.admitted,
            denied=after.denied - before.denied,
            permits=await permits_left(fleet.gateway),
            admitted_at=admitted_at,
        )
        record = crowd.record(rate=plan.rate, burst=plan.burst, server=counts)
        return Round(record, busiest_beyond_burst(admitted_at, began, plan.burst))


async def permits_left(gateway: Gateway) -> int:
    """Permits the gate still counts once every socket is closed; it takes a while to end every socket at a worker."""
    deadline = time.monotonic() + _SETTLE_S
    while (left := (await gateway.counts()).permits) and time.monotonic() < deadline:
        pass  # counts that are fresh come a few times a second
    return left
