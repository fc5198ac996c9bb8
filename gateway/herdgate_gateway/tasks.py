"""asyncio tasks that end with their owner, and blocking calls beside the loop."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["in_thread", "reap"]

Result = TypeVar("Result")


async def reap(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait until they have ended; what they end with is not asked any more."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def in_thread(work: Callable[[], Result]) -> Result:
    """As `asyncio.to_thread`, but the process does not wait for it at its end: a disk may hang, and a network."""
    done: Future[Result] = Future()

    def run() -> None:
        if not done.set_running_or_notify_cancel():
            return
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            done.set_exception(error)

    threading.Thread(target=run, name="herdgate-aside", daemon=True).start()
    return await asyncio.wrap_future(done)
