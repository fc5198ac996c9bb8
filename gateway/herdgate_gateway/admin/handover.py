"""A change handed over to another loop: made there once, or, if nobody waits for it any more, never.

`asyncio.run_coroutine_threadsafe` will not do: cancelled before the other loop has seen it, it still runs the coroutine
up to its first await, and a change that was told to have failed is made later.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future

__all__ = ["hand_over"]


async def hand_over(loop: asyncio.AbstractEventLoop, change: Callable[[], None]) -> None:
    """Call `change` in `loop`, which runs in another thread, and wait until it is done; raises what it raises."""
    made: Future[None] = Future()

    def make() -> None:
        if not made.set_running_or_notify_cancel():
            return
        try:
            change()
        except Exception as error:  # noqa: BLE001 - raised again where it is waited for
            made.set_exception(error)
        else:
            made.set_result(None)

    loop.call_soon_threadsafe(make)
    await asyncio.wrap_future(made)
