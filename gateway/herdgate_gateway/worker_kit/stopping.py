"""A worker's good end: no more shards, those without sockets away at once, the others one by one, then the rest.

first sign    as above, in `stop_s` at most
second sign   the rest at once; what has to end first, as soon as it has
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import Protocol

from herdgate_gateway.worker_kit.pace import pause_s, within_s

__all__ = ["Giving", "Stopping"]

_GIVEN_UP = 0.9
"""Of the time to stop, after which the pace is given up: the table may not answer."""


class Giving(Protocol):
    """As `leases.owner.ShardOwner`."""

    @property
    def held(self) -> tuple[int, ...]:
        """The shards that may be acted on."""
        ...

    async def retire(self) -> None:
        """Say that no more shards are wanted."""
        ...

    async def give(self, shards: Collection[int]) -> None:
        """Give these away; without anybody else, none."""
        ...

    async def stop(self) -> None:
        """Give all that is left away and be dead."""
        ...


class Stopping:
    """Of one worker.

    Args:
        weights: sockets by shard; shards without any may be left out.
        rate: tells the fleet's admissions per second; None: not known.
        stop_s: seconds in which all is to be over.
    """

    def __init__(
        self,
        owner: Giving,
        weights: Callable[[], Mapping[int, int]],
        rate: Callable[[], Awaitable[float | None]],
        stop_s: float,
    ) -> None:
        self._owner, self._weights, self._rate = owner, weights, rate
        self._stop_s = stop_s
        self._hurry = asyncio.Event()
        self._ends_at: float | None = None

    @property
    def left_s(self) -> float:
        """Seconds until all is to be over; the whole time before the first sign."""
        return self._stop_s if self._ends_at is None else self._ends_at - asyncio.get_running_loop().time()

    async def stop(self) -> None:
        """At the first call: stop. At each further one: hurry."""
        if self._ends_at is not None:
            self._hurry.set()
            return
        self._ends_at = asyncio.get_running_loop().time() + self._stop_s
        hurrying = asyncio.ensure_future(self._hurry.wait())
        giving = asyncio.ensure_future(self._give_paced())
        try:
            await asyncio.wait(
                (giving, hurrying), timeout=_GIVEN_UP * self._stop_s, return_when=asyncio.FIRST_COMPLETED
            )
            with suppress(TimeoutError):
                async with asyncio.timeout(max(self.left_s, 0.0)):
                    await self._owner.stop()
        finally:
            giving.cancel()  # not before: what it is about to hand over would be nobody's for a while
            hurrying.cancel()

    async def _give_paced(self) -> None:
        await self._owner.retire()
        rate, loop = await self._rate(), asyncio.get_running_loop()
        ends_at = loop.time() + within_s(self.left_s, rate)
        await self._owner.give([shard for shard in self._owner.held if not self._weights().get(shard)])
        for shard in self._owner.held:
            before = self._weights().get(shard, 0)
            await self._owner.give([shard])
            weights = self._weights()
            moved, left = before - weights.get(shard, 0), sum(weights.values())
            await asyncio.sleep(pause_s(max(moved, 0), left, rate, ends_at - loop.time()))
