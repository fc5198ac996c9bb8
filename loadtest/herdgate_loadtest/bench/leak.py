"""A gateway dies with its sockets (SIGKILL): how long do the others count permits that nobody holds?"""

import time
from dataclasses import dataclass

from herdgate_loadtest.bench.crowds import crowd_at, fleet_is_up, until
from herdgate_loadtest.bench.echo import FLEET, Settings
from herdgate_loadtest.bench.finding import Finding
from herdgate_loadtest.bench.gateways import run_gateways
from herdgate_loadtest.servers.redis import RedisServer, redis_server

__all__ = ["measure"]

_RATE = 500.0
_SETTLE_S = 10.0
_LATEST_S = 60.0


@dataclass(frozen=True, slots=True)
class _Plan:
    dying: int
    staying: int


_FULL, _FAST = _Plan(1_000, 200), _Plan(100, 20)


async def measure(*, fast: bool) -> Finding:
    """`leak_recovery_s`: from the kill until the permits that are counted are those that are held."""
    plan = _FAST if fast else _FULL
    with redis_server() as redis, run_gateways(2, Settings(_RATE, redis.url)) as (dying, staying):
        await fleet_is_up([dying, staying])
        async with crowd_at([dying], {"obey": plan.dying}) as lost, crowd_at([staying], {"obey": plan.staying}) as kept:
            await lost.bring_up(rate=_RATE)
            await kept.bring_up(rate=_RATE)
            all_told = await until(lambda: _counted(redis) == plan.dying + plan.staying, _SETTLE_S)
            killed_at = time.monotonic()
            dying.kill()
            await lost.close()
            found = await until(lambda: _counted(redis) == plan.staying, _LATEST_S)
            recovery_s = float("inf") if found is None else time.monotonic() - killed_at
            held = (await staying.ask(killed_at)).permits
    reasons = [] if all_told is not None else ["the fleet did not count every socket before the kill"]
    if held != plan.staying:
        reasons.append(f"the gateway that stayed holds {held} permits, not {plan.staying}")
    return Finding({"leak_recovery_s": recovery_s}, reasons)


def _counted(redis: RedisServer) -> int:
    """Permits that the fleet counts."""
    counts = redis.command("HMGET", f"{{herdgate:{FLEET}}}:granted", "open", "pending")
    return sum(int(float(count or 0)) for count in counts)
