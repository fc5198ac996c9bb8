"""Looks at a fleet while something is measured: what it decides without Redis is not the fleet's doing."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

__all__ = ["watched"]

_MOST_ALONE = 0.02


@asynccontextmanager
async def watched(is_alone: Callable[[], Awaitable[bool]], every_s: float) -> AsyncIterator[list[str]]:
    """Looks every `every_s`; after the block the list has a reason if gateways decided alone too often.

    Args:
        is_alone: whether any of them does at this moment.
    """
    reasons: list[str] = []
    looks: list[bool] = []

    async def look() -> None:
        while True:
            await asyncio.sleep(every_s)
            looks.append(await is_alone())

    watching = asyncio.create_task(look())
    try:
        yield reasons
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    share = sum(looks) / max(1, len(looks))
    if share > _MOST_ALONE:
        reasons.append(f"gateways had no answer from Redis in time in {share:.0%} of the run: this machine is too busy")
