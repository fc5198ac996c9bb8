"""A worker's good end: no more shards, those without sockets away at once, the others one by one, then the rest.

a drain       as above, within its own time; the process stays
first sign    the same in `stop_s`: a drain that goes on is over by then too, if that is sooner
second sign   the rest at once; what has to end first, as soon as it has
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol

from herdgate_gateway.tasks import reap
from herdgate_gateway.worker_kit.pace import pause_s, within_s

__all__ = ["Giving", "Stopping"]

_GIVEN_UP = 0.9
"""Of the time to stop, after which the pace is given up: the table may not answer."""

_LOOK_S = 0.1
"""Between looks whether the time has become shorter."""


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
        stop_s: seconds from the first sign in which all is to be over.
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
        self._is_told = self._is_hurried = self._is_over = False
        self._set_at: float | None = None
        self._ends_at = 0.0

    @property
    def is_begun(self) -> bool:
        """True from the first word of it on."""
        return self._set_at is not None

    @property
    def left_s(self) -> float:
        """Seconds until all is to be over; the whole time before the first word."""
        return self._ends_at - _now() if self.is_begun else self._stop_s

    async def drain(self, within_s: float) -> None:
        """Give all away, in so many seconds; one that goes on already is only ever shortened."""
        is_first = not self.is_begun
        if is_first or self._is_over or _now() + within_s < self._ends_at:
            self._set_at, self._ends_at = _now(), _now() + within_s
        if is_first:
            await self._give_all()

    async def stop(self) -> None:
        """At the first call: stop. At each further one: hurry."""
        if self._is_told:
            self._is_hurried = True
            return
        self._is_told = True
        await self.drain(self._stop_s)

    async def _give_all(self) -> None:
        giving = asyncio.ensure_future(self._give_paced())
        leaving: asyncio.Future[None] | None = None
        try:
            while not (giving.done() or self._is_hurried) and _now() < self._after(_GIVEN_UP):
                await asyncio.wait((giving,), timeout=_LOOK_S)
            leaving = asyncio.ensure_future(self._owner.stop())
            while not leaving.done() and _now() < self._ends_at:
                await asyncio.wait((leaving,), timeout=_LOOK_S)
            if leaving.done():
                leaving.result()
        finally:
            self._is_over = True
            # Not before: what it is about to hand over would be nobody's for a while.
            await reap(*(task for task in (leaving, giving) if task is not None))

    async def _give_paced(self) -> None:
        await self._owner.retire()
        rate = await self._rate()
        await self._owner.give([shard for shard in self._owner.held if not self._weights().get(shard)])
        for shard in self._owner.held:
            before = self._weights().get(shard, 0)
            await self._owner.give([shard])
            weights = self._weights()
            moved, left = before - weights.get(shard, 0), sum(weights.values())
            await self._pause(max(moved, 0), left, rate)

    async def _pause(self, moved: int, left: int, rate: float | None) -> None:
        """As long as the pace asks for, which is less once there is less time."""
        began = _now()
        while True:
            pause = pause_s(moved, left, rate, self._after(within_s(1.0, rate)) - began)
            if (rest_s := began + pause - _now()) <= 0:
                return
            await asyncio.sleep(min(rest_s, _LOOK_S))

    def _after(self, share: float) -> float:
        """When this share of the time is over."""
        assert self._set_at is not None
        return self._set_at + share * (self._ends_at - self._set_at)


def _now() -> float:
    return asyncio.get_running_loop().time()
