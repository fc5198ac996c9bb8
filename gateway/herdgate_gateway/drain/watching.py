"""The triggers that have to be looked for. Here: a file that somebody makes.

An early sign of a balancer is looked for the same way: whoever sees it calls `Drain.begin("sign")`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from herdgate_gateway.tasks import reap

__all__ = ["watching_file"]

LOOK_S = 0.5


@asynccontextmanager
async def watching_file(file: Path | None, act: Callable[[], None]) -> AsyncIterator[None]:
    """Call `act` once there is such a file, in this block; one that is there already counts. None: never."""
    watching = None if file is None else asyncio.get_running_loop().create_task(_watch(file, act))
    try:
        yield
    finally:
        if watching is not None:
            await reap(watching)


async def _watch(file: Path, act: Callable[[], None]) -> None:
    while True:
        if await asyncio.to_thread(file.exists):
            act()
            return
        await asyncio.sleep(LOOK_S)
