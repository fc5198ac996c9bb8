"""Redis forgets everything (FLUSHALL) in the middle of a crowd: what was promised must not be promised again."""

import asyncio
import time
from dataclasses import dataclass

from herdgate_loadtest.bench.crowds import crowd_at, fleet_is_up, keep_asking
from herdgate_loadtest.bench.echo import Settings
from herdgate_loadtest.bench.finding import Finding
from herdgate_loadtest.bench.gateways import ask_all, run_gateways
from herdgate_loadtest.bench.samples import alone_share
from herdgate_loadtest.servers.redis import redis_server

__all__ = ["measure"]

_GATEWAYS = 3


@dataclass(frozen=True, slots=True)
class _Plan:
    rate: float
    clients: int
    coming_per_s: float
    before_s: float
    watched_s: float


_FULL = _Plan(200.0, 10_000, 2_000, before_s=10.0, watched_s=30.0)
_FAST = _Plan(50.0, 500, 250, before_s=3.0, watched_s=4.0)


async def measure(*, fast: bool) -> Finding:
    """`flush_overadmission`: admissions in the next 30 s, in rates."""
    plan = _FAST if fast else _FULL
    with redis_server() as redis, run_gateways(_GATEWAYS, Settings(plan.rate, redis.url)) as gateways:
        await fleet_is_up(gateways)
        async with keep_asking(crowd_at(gateways, {"obey": plan.clients}), plan.coming_per_s) as crowd:
            await asyncio.sleep(plan.before_s)
            redis.command("FLUSHALL")
            began = time.monotonic()
            await asyncio.sleep(plan.watched_s)
            end, after = time.monotonic(), crowd.snapshot()
            told = await ask_all(gateways, began)
            reasons = list(crowd.health.reasons())
    if after.open == after.clients:
        reasons.append("the crowd was in before the time was up")
    admitted = sum(moment < end for one in told for moment in one.admitted_at)
    return Finding(
        {"flush_overadmission": admitted / (plan.rate * (end - began))},
        reasons,
        {
            "admitted": admitted,
            "failed": after.failed,
            "lost": after.lost,
            "alone_share": max(alone_share(one.samples) for one in told),
        },
    )
