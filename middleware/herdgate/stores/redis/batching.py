"""Gathers arrivals while a call is under way, and makes the next one with all of them: one at a time, not too often.

Calls spend a small bucket: a crowd of any size costs the same number of them, and a quiet gateway adds one round trip
to an admission. Without arrivals a call is made all the same now and then: it is the heartbeat.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from herdgate.core.grant import Grant
from herdgate.stores.redis.budget import CallBudget
from herdgate.stores.redis.wire import Ask

__all__ = ["Batcher", "Waiting"]

HEARTBEAT_S = 0.25
STOP_S = 0.2  # for a call that is under way


class Waiting(NamedTuple):
    """One arrival that waits for its grant."""

    ask: Ask
    answer: asyncio.Future[Grant]


class Batcher:
    """Calls `call` with each batch; it must not raise.

    Args:
        call: settles a batch, which may be empty.
        clock: monotonic seconds.
    """

    def __init__(self, call: Callable[[Sequence[Waiting]], Awaitable[None]], clock: Callable[[], float]) -> None:
        self._call = call
        self._clock = clock
        self._budget = CallBudget(clock())
        self._batch: list[Waiting] = []
        self._is_due = self._is_stopping = False
        self._wake = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def start(self, first: Callable[[], Awaitable[None]]) -> None:
        """Call from now on, in the running loop, after `first`; harmless to repeat."""
        if self._running is None or self._running.done():
            self._is_stopping = False
            self._running = asyncio.get_running_loop().create_task(self._run(first))

    async def stop(self) -> Sequence[Waiting]:
        """Make no more calls, once the one under way has ended; those that still wait."""
        self._is_stopping = True
        self._wake.set()
        if self._running is not None:
            await asyncio.wait((self._running,), timeout=STOP_S)
            self._running.cancel()
            await asyncio.wait((self._running,))
        return self._take()

    def add(self, ask: Ask) -> Waiting:
        """One more for the next batch."""
        waiting = Waiting(ask, asyncio.get_running_loop().create_future())
        self._batch.append(waiting)
        self._wake.set()
        return waiting

    def hurry(self) -> None:
        """Make the next call soon, arrivals or not."""
        self._is_due = True
        self._wake.set()

    async def _run(self, first: Callable[[], Awaitable[None]]) -> None:
        await first()
        while True:
            await self._wait()
            await asyncio.sleep(self._budget.wait_s(self._clock()))
            if self._is_stopping:
                return
            self._budget.spend()
            self._is_due = False
            await self._call(self._take())

    async def _wait(self) -> None:
        self._wake.clear()
        if self._batch or self._is_due or self._is_stopping:
            return
        try:
            async with asyncio.timeout(HEARTBEAT_S):
                await self._wake.wait()
        except TimeoutError:
            return

    def _take(self) -> Sequence[Waiting]:
        """All who wait and have not gone."""
        batch, self._batch = self._batch, []
        return [waiting for waiting in batch if not waiting.answer.done()]
