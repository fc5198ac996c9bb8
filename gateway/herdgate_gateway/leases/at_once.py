"""Many writes at once, but not all of them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

__all__ = ["for_each"]

Thing = TypeVar("Thing")


async def for_each(things: Iterable[Thing], act: Callable[[Thing], Awaitable[None]], *, most: int) -> None:
    """Act on each, at most so many at the same time.

    Raises:
        Exception: the first one that an act raised; the others are cancelled.
    """
    listed = list(things)
    waiting = iter(listed)

    async def work() -> None:
        for thing in waiting:
            await act(thing)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(most, len(listed))):
            group.create_task(work())
