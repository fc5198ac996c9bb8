"""The rate of the fleet, as its calendar in Redis has it."""

import asyncio
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
                rate = await redis.hget(f"{{herdgate:{fleet}}}:calendar", "rate")
                return None if rate is None else float(rate)
        return None
    finally:
        await redis.aclose()
