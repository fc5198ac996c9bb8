"""A crowd is cut off in one instant and comes back through several gateways: do they add up to one calendar?"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from herdgate_loadtest.bench.crowds import crowd_at, fleet_is_up
from herdgate_loadtest.bench.echo import Settings
from herdgate_loadtest.bench.finding import Finding
from herdgate_loadtest.bench.gateways import Gateway, Told, ask_all, run_gateways
from herdgate_loadtest.bench.samples import alone_share
from herdgate_loadtest.engine import Record, ServerCounts
from herdgate_loadtest.servers.redis import redis_server

__all__ = ["measure", "most_beyond"]

_LATEST_S = 60.0  # beyond the ideal time
_SETTLE_S = 10.0


@dataclass(frozen=True, slots=True)
class _Plan:
    gateways: int
    clients: int
    rate: float

    @property
    def burst(self) -> float:
        """A twentieth of a second, as in the demo: what is left of a larger one is there in any later second."""
        return max(1.0, self.rate / 20)

    def settings(self, redis: str) -> Settings:
        return Settings(self.rate, redis, self.burst, max_wait_s=3.0)

    @property
    def latest_s(self) -> float:
        return self.clients / self.rate + _LATEST_S


_FULL, _FAST = _Plan(3, 10_000, 500.0), _Plan(2, 400, 100.0)


async def measure(*, fast: bool) -> Finding:
    """`overshoot`: admissions in the busiest aligned second, the burst taken off the first, in rates; and
    `recovery_ratio`: time until all are back / the ideal time.
    """
    plan = _FAST if fast else _FULL
    with redis_server() as redis, run_gateways(plan.gateways, plan.settings(redis.url)) as gateways:
        await fleet_is_up(gateways)
        record, details = await _play(plan, gateways)
    return Finding(
        {
            "overshoot": record.peak_admitted_per_s / plan.rate,
            "recovery_ratio": float("inf") if record.recovery_ratio is None else record.recovery_ratio,
        },
        record.reasons,
        {
            "t100_s": record.t100_s,
            "ideal_s": record.ideal_s,
            "attempts_per_client": record.attempts_per_client,
            "denial_p99_ms": record.denial_p99_ms or 0.0,
            "failed": record.failed,
            "leaked_permits": record.leaked_permits or 0,
            **details,
        },
    )


async def _play(plan: _Plan, gateways: Sequence[Gateway]) -> tuple[Record, dict[str, float]]:
    async with crowd_at(gateways, {"obey": plan.clients}) as crowd:
        await crowd.bring_up(rate=plan.rate, deadline_s=plan.latest_s)
        await crowd.hold(1.5)  # the bucket fills up
        before = await ask_all(gateways, time.monotonic())
        began = crowd.cut("reset")
        await crowd.recover(deadline_s=plan.latest_s)
        after = await ask_all(gateways, began)
        await crowd.close()
        permits = await _permits_left(gateways)
        server = _counts(before, after, permits)
        moments = [moment - began for moment in server.admitted_at or ()]
        return crowd.record(rate=plan.rate, burst=plan.burst, server=server), {
            "beyond_bucket": most_beyond(moments, plan.rate, plan.burst),
            "in_first_s": sum(moment < 1 for moment in moments),
            "in_second_s": sum(1 <= moment < 2 for moment in moments),
            "alone_share": max(alone_share(told.samples) for told in after),
        }


def _counts(before: Sequence[Told], after: Sequence[Told], permits: int) -> ServerCounts:
    return ServerCounts(
        admitted=sum(told.admitted for told in after) - sum(told.admitted for told in before),
        denied=sum(told.denied for told in after) - sum(told.denied for told in before),
        permits=permits,
        admitted_at=[moment for told in after for moment in told.admitted_at],
    )


def most_beyond(moments: Sequence[float], rate: float, burst: float) -> float:
    """Admissions that a bucket does not allow, in the worst of all windows: those above `burst` + `rate` * its length.

    At most 0 if a bucket of that size was kept, whichever second its tokens were used in.
    """
    least, worst = float("inf"), -burst
    for number, moment in enumerate(sorted(moments)):
        ahead = number - rate * moment
        least = min(least, ahead)
        worst = max(worst, ahead - least + 1 - burst)
    return worst


async def _permits_left(gateways: Sequence[Gateway]) -> int:
    """Permits still taken once every socket is closed; a server takes a while to see so many ends."""
    end = time.monotonic() + _SETTLE_S
    while (left := sum(told.permits for told in await ask_all(gateways, end))) and time.monotonic() < end:
        pass  # asking takes its time
    return left
