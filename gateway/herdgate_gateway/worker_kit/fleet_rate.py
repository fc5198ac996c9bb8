"""The rate of the fleet, as its calendar in Redis has it."""

import asyncio
import math
from contextlib import suppress

from herdgate_gateway.leases.channel import open_redis

__all__ = ["fleet_rate"]

_WITHIN_S = 0.5


async def fleet_rate(url: str | None, fleet: str) -> float | None:
    """Admissions per second; None: there is no calendar, or no Redis that says so in time."""
    if url is None:
        return None
    redis = open_redis(url)
    try:
        with suppress(Exception):  # it is only less exact without
            async with asyncio.timeout(_WITHIN_S):
                rate = float(await redis.hget(f"{{herdgate:{fleet}}}:calendar", "rate"))
                return rate if 0 <= rate < math.inf else None
        return None
    finally:
        await redis.aclose()
