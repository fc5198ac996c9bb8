"""Redis is away for a minute under load: gateways go on with their shares, and no socket is closed for it.

For the first half of the time it hangs, for the second it is gone; afterwards it comes back empty.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from herdgate_loadtest.bench.crowds import crowd_at, fleet_is_up, keep_asking
from herdgate_loadtest.bench.echo import Settings
from herdgate_loadtest.bench.finding import Finding
from herdgate_loadtest.bench.gateways import Gateway, ask_all, run_gateways
from herdgate_loadtest.engine import Crowd
from herdgate_loadtest.servers.redis import RedisServer, redis_server

__all__ = ["measure"]

_GATEWAYS = 3
_UP_AGAIN_S = 15.0


@dataclass(frozen=True, slots=True)
class _Plan:
    rate: float
    clients: dict[str, int]
    coming_per_s: float
    before_s: float
    away_s: float


_FULL = _Plan(100.0, {"obey": 6_500, "fixed:5": 1_500}, 1_000, before_s=10.0, away_s=60.0)
_FAST = _Plan(50.0, {"obey": 400, "fixed:5": 100}, 300, before_s=3.0, away_s=4.0)


async def measure(*, fast: bool) -> Finding:
    """`outage_admission_ratio`: admissions while Redis is away, in rates; and `sockets_lost` meanwhile."""
    plan = _FAST if fast else _FULL
    with redis_server() as redis, run_gateways(_GATEWAYS, Settings(plan.rate, redis.url)) as gateways:
        await fleet_is_up(gateways)
        async with keep_asking(crowd_at(gateways, plan.clients), plan.coming_per_s) as crowd:
            await asyncio.sleep(plan.before_s)
            return await _watch(plan, redis, gateways, crowd)


async def _watch(plan: _Plan, redis: RedisServer, gateways: Sequence[Gateway], crowd: Crowd) -> Finding:
    lost, began = crowd.snapshot().lost, time.monotonic()
    redis.pause()
    await asyncio.sleep(plan.away_s / 2)
    gone = time.monotonic()
    redis.kill()
    await asyncio.sleep(max(0.0, began + plan.away_s - time.monotonic()))
    end, after = time.monotonic(), crowd.snapshot()
    redis.start()
    back_s = await _up_again(gateways)
    moments = [moment for told in await ask_all(gateways, began) for moment in told.admitted_at if moment < end]
    reasons = list(crowd.health.reasons())
    if after.open == after.clients:
        reasons.append("the crowd was in before Redis was back")
    hanging = sum(moment < gone for moment in moments)
    return Finding(
        {
            "outage_admission_ratio": len(moments) / (plan.rate * (end - began)),
            "sockets_lost": after.lost - lost,
        },
        reasons,
        {
            "while_it_hangs": hanging / (plan.rate * (gone - began)),
            "while_it_is_gone": (len(moments) - hanging) / (plan.rate * (end - gone)),
            "sockets_open": after.open,
            "failed": after.failed,
            "back_s": back_s,
        },
    )


async def _up_again(gateways: Sequence[Gateway]) -> float:
    """Seconds until every gateway decides with Redis again; infinite: not in time."""
    began = time.monotonic()
    while time.monotonic() < began + _UP_AGAIN_S:
        if all(told.is_up for told in await ask_all(gateways, time.monotonic())):
            return time.monotonic() - began
    return float("inf")
