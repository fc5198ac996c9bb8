"""asyncio tasks that end with their owner."""

import asyncio
from typing import Any

__all__ = ["reap"]


async def reap(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait until they have ended; what they end with is not asked any more."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
