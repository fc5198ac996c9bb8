"""Workers with a capacity behind several gateways: no instant may see a worker hold more sockets than that.

Workers and gateways are processes, and what a worker holds is counted by itself. Twice as many clients as there is room
for come at all gateways at once, and go on knocking; a part of them, at times all of them, leaves at once and comes
again, whether let in, waiting or turned away. In the middle one gateway is killed (SIGKILL), and its clients come to
the others.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count

from herdgate_loadtest.bench.crowds import crowd_at, fleet_is_up, keep_asking
from herdgate_loadtest.bench.finding import Finding
from herdgate_loadtest.bench.relays import Relay, run_relays
from herdgate_loadtest.bench.watch import watched
from herdgate_loadtest.bench.workers import Worker, all_report, run_workers
from herdgate_loadtest.engine import Crowd
from herdgate_loadtest.servers.redis import redis_server

__all__ = ["measure", "never_full"]

_GATEWAYS = 3
_CROWDS = 4  # each leaves and comes as one
_AT_ONCE = 100_000.0  # clients a second
_TURN_S = 0.5
_ALL_TURNS = 8  # every so often all leave
_LATEST_S = 20.0  # a fleet learns for 10 s, and forgets a gateway after 10 s
_GONE_S = 1.0  # from the kill until workers have seen that its sockets are gone
_LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class _Plan:
    capacities: tuple[int, ...]
    used: float  # share of each capacity at the kill; half is all that a fleet uses while it learns
    seconds: float  # with everybody there, before the kill and once its places are free again

    @property
    def clients(self) -> dict[str, int]:
        """Of one crowd."""
        knocking = 2 * sum(self.capacities) // _CROWDS
        return {"obey": knocking // 2, "fixed": knocking - knocking // 2}


_FULL, _FAST = _Plan((120, 60), 1.0, 5.0), _Plan((40, 20), 0.5, 0.5)


async def measure(*, fast: bool) -> Finding:
    """`over_capacity`: sockets above its capacity that a worker held at its fullest; of several workers the worst."""
    plan = _FAST if fast else _FULL
    with (
        redis_server() as redis,
        run_workers(plan.capacities, redis) as workers,
        run_relays(_GATEWAYS, workers, redis) as gateways,
    ):
        await fleet_is_up(gateways)
        await all_report(workers, redis)
        async with AsyncExitStack() as stack:
            crowds = [
                await stack.enter_async_context(keep_asking(crowd_at(gateways, plan.clients, seed), _AT_ONCE))
                for seed in range(_CROWDS)
            ]
            return await _watch(plan, workers, gateways, crowds)


async def _watch(plan: _Plan, workers: Sequence[Worker], gateways: Sequence[Relay], crowds: Sequence[Crowd]) -> Finding:
    dying, *staying = gateways

    async def is_alone() -> bool:
        return not all(await asyncio.gather(*(gateway.is_in(1) for gateway in staying)))

    async with watched(is_alone, _LOOK_S) as reasons, _come_and_go(crowds):
        roomy = await never_full(workers, plan.used, 0.0, _LATEST_S)
        await asyncio.sleep(plan.seconds)
        killed, killed_at = await dying.counts(), time.monotonic()
        dying.kill()
        roomy_again = await never_full(workers, 1.0, killed_at + _GONE_S, _LATEST_S)
        again_s = time.monotonic() - killed_at
        await asyncio.sleep(plan.seconds)
        peaks = [await worker.most() for worker in workers]
        counts = [killed, *[await gateway.counts() for gateway in staying]]
    for moment, names in (("before the kill", roomy), ("after it", roomy_again)):
        reasons += [f"{name} was never full {moment}: this machine has no time for the crowd" for name in names]
    reasons += dict.fromkeys(reason for crowd in crowds for reason in crowd.health.reasons())
    return Finding(
        {"over_capacity": max(0, *(peak - worker.capacity for peak, worker in zip(peaks, workers, strict=True)))},
        reasons,
        {
            **{f"most_at_worker_{number}": peak for number, peak in enumerate(peaks, 1)},
            "lost_with_gateway": killed.open,
            "full_again_s": again_s,
            "admitted": sum(one.admitted for one in counts),
            "full": sum(one.full for one in counts),
        },
    )


async def never_full(workers: Sequence[Worker], share: float, since: float, within_s: float) -> list[str]:
    """Wait until each worker has held this share of its capacity since `since`; the names of those that did not."""
    end = time.monotonic() + within_s
    while True:
        peaks = await asyncio.gather(*(worker.most(since) for worker in workers))
        names = [worker.name for worker, peak in zip(workers, peaks, strict=True) if peak < share * worker.capacity]
        if not names or time.monotonic() > end:
            return names
        await asyncio.sleep(_LOOK_S)


@asynccontextmanager
async def _come_and_go(crowds: Sequence[Crowd]) -> AsyncIterator[None]:
    """One crowd after the other leaves at once and comes again, while the block runs."""
    rng = random.Random(1)

    async def turn() -> None:
        for number in count(1):
            await asyncio.sleep(_TURN_S)
            for crowd in crowds if number % _ALL_TURNS == 0 else [rng.choice(crowds)]:
                crowd.cut(rng.choice(("close", "reset")))
                await asyncio.sleep(0)  # the others' turn: a crowd's health excuses its own cut only

    turning = asyncio.create_task(turn())
    try:
        yield
    finally:
        turning.cancel()
        with suppress(asyncio.CancelledError):
            await turning
