"""Strong reads of who owns a shard, for handshakes that claim to know better: one at a time for a shard, bounded."""

import asyncio
from collections.abc import Awaitable, Callable

from herdgate_gateway.leases.rows import ShardRow
from herdgate_gateway.leases.table import TableError

__all__ = ["Lookups"]

WITHIN_S = 0.5


class Lookups:
    """Reads that many handshakes share.

    Args:
        adopt: as `duty.Owning.adopt`.
        within_s: seconds that one handshake waits.
    """

    def __init__(self, adopt: Callable[[int], Awaitable[ShardRow | None]], within_s: float = WITHIN_S) -> None:
        self._adopt, self._within_s = adopt, within_s
        self._reading: dict[int, asyncio.Task[ShardRow | None]] = {}

    async def look(self, shard: int) -> ShardRow | None:
        """Its row; None: there is none, or the table did not say in time."""
        reading = self._reading.get(shard)
        if reading is None:
            reading = self._reading[shard] = asyncio.create_task(self._read(shard))
        done, _ = await asyncio.wait((reading,), timeout=self._within_s)
        return reading.result() if done else None

    async def _read(self, shard: int) -> ShardRow | None:
        try:
            return await self._adopt(shard)
        except TableError:
            return None
        finally:
            del self._reading[shard]
