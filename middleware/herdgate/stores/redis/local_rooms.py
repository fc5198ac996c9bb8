"""Which worker takes an arrival while Redis is away: capacities hold, as far as one gateway alone can keep them.

A gateway may hold at each worker what it held when it was last told of the fleet, and its part of the room that was
left there. Pure.
"""

import math
from collections.abc import Mapping, Sequence

from herdgate.stores.redis.wire import Reply

__all__ = ["LocalRooms"]


class LocalRooms:
    """The sockets that this process may hold at each worker. One it was never told of has room for all."""

    def __init__(self) -> None:
        self._caps: dict[str, float] = {}

    def learn(self, reply: Reply, held: Mapping[str, int]) -> None:
        """Take over what a reply tells.

        Args:
            reply: where it tells no rooms, what was told before holds.
            held: sockets at each worker by then, what this reply grants included.
        """
        if reply.rooms:
            gateways = max(1, reply.gateways)
            self._caps = {
                name: -1 if room < 0 else held.get(name, 0) + (room if math.isinf(room) else room // gateways)
                for name, room in reply.rooms.items()
            }

    def choose(self, workers: Sequence[str], held: Mapping[str, int]) -> str | None:
        """The worker with the least of what it may hold in use; None: none has room."""
        allowed = [name for name in workers if held.get(name, 0) < self._caps.get(name, math.inf)]
        return min(allowed, key=lambda name: self._load(name, held), default=None)

    def _load(self, name: str, held: Mapping[str, int]) -> float:
        cap = self._caps.get(name, math.inf)
        return held.get(name, 0) / (1 if math.isinf(cap) else cap)
