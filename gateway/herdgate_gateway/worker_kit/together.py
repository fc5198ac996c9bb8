"""Two duties of one worker, as one: its app serves clients of the connections that its handlers dial out for."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from herdgate_gateway.tasks import reap
from herdgate_gateway.worker_kit.duty import Duty

__all__ = ["Together"]


class Together:
    """A `duty.Duty`: each of these is told all.

    Args:
        duties: the first one starts first, and closes last.
    """

    def __init__(self, duties: Sequence[Duty]) -> None:
        self._duties = duties

    def gained(self, shard: int, epoch: int) -> None:
        """As `Duty.gained`."""
        for duty in self._duties:
            duty.gained(shard, epoch)

    def lost(self, shard: int, epoch: int) -> None:
        """As `Duty.lost`."""
        for duty in self._duties:
            duty.lost(shard, epoch)

    def wants_changed(self, shards: Iterable[int]) -> None:
        """As `Duty.wants_changed`."""
        told = list(shards)
        for duty in self._duties:
            duty.wants_changed(told)

    def weights(self) -> Mapping[int, int]:
        """As `Duty.weights`: sockets and handlers."""
        weights: Counter[int] = Counter()
        for duty in self._duties:
            weights.update(duty.weights())
        return weights

    def load(self) -> int:
        """As `Duty.load`."""
        return sum(duty.load() for duty in self._duties)

    async def start(self) -> None:
        """As `Duty.start`."""
        for duty in self._duties:
            await duty.start()

    async def release(self, shard: int) -> None:
        """As `Duty.release`."""
        await asyncio.gather(*(duty.release(shard) for duty in self._duties))

    async def run(self) -> None:
        """As `Duty.run`: until one of them returns."""
        running = [asyncio.ensure_future(duty.run()) for duty in self._duties]
        try:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await reap(*running)

    async def aclose(self) -> None:
        """As `Duty.aclose`."""
        for duty in reversed(self._duties):
            await duty.aclose()
