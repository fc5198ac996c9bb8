"""What owners tell the fleet over Redis, kept in a ledger."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from herdgate_loadtest.demo.leased.ledger import Ledger
from herdgate_loadtest.servers.lease_table import FLEET, Place

__all__ = ["keeping_ledger"]

_CHANNEL = f"herdgate:leases:{FLEET}"


@asynccontextmanager
async def keeping_ledger(place: Place) -> AsyncIterator[Ledger]:
    """A ledger that begins with what the table says, and hears all news while the block runs.

    Raises:
        CrowdError: the table does not answer.
    """
    from redis.asyncio import Redis

    async with Redis.from_url(place.redis, decode_responses=True) as redis, redis.pubsub() as channel:
        await channel.subscribe(_CHANNEL)
        ledger = Ledger(await asyncio.to_thread(place.owners), time.monotonic())  # what is told meanwhile waits

        async def listen() -> None:
            async for message in channel.listen():
                if message["type"] == "message":
                    ledger.hear(message["data"], time.monotonic())

        listening = asyncio.create_task(listen())
        try:
            yield ledger
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
