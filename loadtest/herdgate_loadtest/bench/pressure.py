"""One gateway of three is asked far more often than it may call Redis: what does a decision cost in calls?"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from herdgate_loadtest.bench.crowds import crowd_at, fleet_is_up, keep_asking
from herdgate_loadtest.bench.echo import Settings
from herdgate_loadtest.bench.finding import Finding
from herdgate_loadtest.bench.gateways import Gateway, ask_all, run_gateways
from herdgate_loadtest.bench.samples import alone_share, busiest_calls_per_s, driven
from herdgate_loadtest.engine import Crowd
from herdgate_loadtest.servers.redis import RedisServer, redis_server

__all__ = ["measure"]

_GATEWAYS = 3
_RATE = 20.0  # so that the crowd stays outside, and asks
_MOST_UNCOUNTED = 10  # calls between asking the server and asking the gateways


@dataclass(frozen=True, slots=True)
class _Plan:
    clients: int  # each asks once a second
    seconds: float
    driven_per_s: float
    least_driven: int
    window_s: float


_FULL = _Plan(clients=1_900, seconds=25.0, driven_per_s=1_000, least_driven=10, window_s=10.0)
_FAST = _Plan(clients=400, seconds=4.0, driven_per_s=200, least_driven=1, window_s=2.0)


async def measure(*, fast: bool) -> Finding:
    """`redis_calls_per_decision`, in the seconds in which at least 1,000 arrivals reach one gateway; and
    `redis_calls_per_gateway_s`, in the busiest 10 s of any gateway.
    """
    plan = _FAST if fast else _FULL
    with redis_server() as redis, run_gateways(_GATEWAYS, Settings(_RATE, redis.url)) as gateways:
        await fleet_is_up(gateways)
        async with keep_asking(crowd_at(gateways[:1], {"fixed": plan.clients}), plan.clients) as crowd:
            return await _watch(plan, redis, gateways, crowd)


async def _watch(plan: _Plan, redis: RedisServer, gateways: Sequence[Gateway], crowd: Crowd) -> Finding:
    began, before, sent_before = time.monotonic(), await ask_all(gateways, time.monotonic()), redis.calls()
    await asyncio.sleep(plan.seconds)
    after, sent = await ask_all(gateways, began), redis.calls() - sent_before
    told = sum(one.calls for one in after) - sum(one.calls for one in before)
    seconds, decisions, calls = driven(after[0].samples, plan.driven_per_s)
    reasons = list(crowd.health.reasons())
    if seconds < plan.least_driven:
        busy = f"{plan.driven_per_s:,.0f} arrivals a second reached the gateway in {seconds} s only"
        reasons.append(f"{busy}; {plan.least_driven} are needed")
    if abs(sent - told) > _MOST_UNCOUNTED:
        reasons.append(f"Redis counted {sent} calls, the gateways {told}")
    worst = max(busiest_calls_per_s(one.samples, plan.window_s) for one in after)
    return Finding(
        {
            "redis_calls_per_decision": calls / decisions if decisions else float("inf"),
            "redis_calls_per_gateway_s": worst,
        },
        reasons,
        {"driven_s": seconds, "decisions": decisions, "calls": calls, "alone_share": alone_share(after[0].samples)},
    )
