"""Reports of a worker to its fleet: about once a second, and within a moment where its state is another one.

A report that cannot be made is dropped, and the next one is made in its turn. Nothing waits for it.
"""

import asyncio
import json
import logging
import random
from collections.abc import Callable
from contextlib import suppress

from herdgate.core.errors import ConfigurationError
from herdgate.fleet import Fleet
from herdgate.load import LoadFigures
from herdgate.stores.redis import outages
from herdgate.stores.redis.channel import Word
from herdgate.stores.redis.errors import LinkError
from herdgate.stores.redis.link import Link
from herdgate.stores.redis.scripts import Script

__all__ = ["REPORT", "Reporter", "Words"]

REPORT = Script.load("report")
TICK_S = 0.1
EVERY_S = (0.9, 1.1)

Words = tuple[str, int | None, str, LoadFigures]
"""Name, capacity, state and load of the worker."""

_logger = logging.getLogger("herdgate.redis")


class Reporter:
    """Reports what `words` returns, from `start` to `aclose`. Belongs to one event loop."""

    def __init__(self, fleet: Fleet, words: Callable[[], Words]) -> None:
        self._link = Link(fleet.redis)
        self._key = f"{{herdgate:{fleet.name}}}:calendar"
        self._words = words
        self._lag_s = 0.0  # the longest since the last report
        self._told: str | None = None  # the state reported last; None: it has to be reported now
        self._due = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Report from now on, in the running loop; harmless to repeat."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def aclose(self) -> None:
        """Report once more, if that can be done at once, and no more."""
        if self._task is None or self._task.done():
            return
        self._task.cancel()
        await asyncio.wait((self._task,))
        with suppress(LinkError):
            await self._report(*self._words())
        await self._link.aclose()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await self._link.check(self._key)
        except ConfigurationError as error:
            _logger.error("%s", error)
        except LinkError as error:
            outages.say(error, "its gateways go by what they know of this worker")
        while True:
            with suppress(LinkError):
                await self._report_if_due(loop.time())
            before = loop.time()
            await asyncio.sleep(TICK_S)
            self._lag_s = max(self._lag_s, loop.time() - before - TICK_S)

    async def _report_if_due(self, now: float) -> None:
        words = self._words()
        if words[2] == self._told and now < self._due:
            return
        self._told = None
        await self._report(*words)
        self._told, self._due = words[2], now + random.uniform(*EVERY_S)

    async def _report(self, name: str, capacity: int | None, state: str, load: LoadFigures) -> None:
        lag_s, self._lag_s = self._lag_s, 0.0
        figures: list[Word] = [load.open, load.pending, load.setup_p95_s, lag_s]
        room = "" if capacity is None else capacity
        await self._link.call(REPORT, [self._key], [name, room, *figures, state, json.dumps(load.gateways)])
