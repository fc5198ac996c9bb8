"""Whose turn it is to drain, and how much of the pace each has.

in a fleet      those that drain, and those that wait, are written down in Redis, with what each has left; the pace
                is shared by that, so that all are ready together, and never add up to more
Redis away      nobody waits, once that has lasted; the rate is this process's own part already
no answer       although the fleet has its calendar: of the pace as much as if all of it drained
without fleet   nobody else is known; processes beside this one drain with it, each with its part
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from herdgate import FleetSnapshot
from herdgate.stores.redis.drains import FleetDrains
from herdgate.stores.redis.errors import LinkError

__all__ = ["FleetTurns", "OwnTurns", "Turns"]

TELL_S = 0.25

AWAY_S = 3.0
"""After which a Redis that gives no answer is away, and does not only falter: as long as it remembers who drains."""


class Turns(Protocol):
    """Of one process.

    Attributes:
        has_turn: it may drain now.
        part: of the pace of all drains, 0 to 1.
    """

    has_turn: bool
    part: float

    def start(self, left: Callable[[], int], waits: Callable[[], bool]) -> None:
        """Say from now on that it drains, or waits for its turn.

        Args:
            left: tells how many sockets it still has to move.
            waits: tells whether it minds how many others drain.
        """
        ...

    async def aclose(self) -> None:
        """It drains no more."""
        ...


class OwnTurns:
    """Without a fleet.

    Args:
        siblings: processes that drain together, this one included.
    """

    def __init__(self, siblings: int = 1) -> None:
        self.has_turn, self.part = True, 1 / siblings

    def start(self, left: Callable[[], int], waits: Callable[[], bool]) -> None:
        """Nobody needs to know."""

    async def aclose(self) -> None:
        """Nobody knew."""


class FleetTurns:
    """In a fleet.

    Args:
        drains: of the fleet.
        most: gateways that may drain at once; None: half of them.
        fleet: tells how the fleet is, as this process sees it. None: not known yet.
    """

    def __init__(self, drains: FleetDrains, most: int | None, fleet: Callable[[], FleetSnapshot | None]) -> None:
        self._drains, self._most, self._fleet = drains, most, fleet
        self.has_turn, self.part = False, 0.0
        self._answered_at = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self, left: Callable[[], int], waits: Callable[[], bool]) -> None:
        """See `Turns`."""
        self._task = asyncio.get_running_loop().create_task(self._run(left, waits))

    async def aclose(self) -> None:
        """See `Turns`."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))
            with suppress(LinkError):
                await self._drains.leave()
            await self._drains.aclose()

    async def _run(self, left: Callable[[], int], waits: Callable[[], bool]) -> None:
        self._answered_at = time.monotonic()
        self._go_alone()
        await self._drains.connect()
        while True:
            try:
                told = await self._drains.tell(left(), self._most, waits=waits())
            except LinkError:
                self._go_alone()
            else:
                self.has_turn, self.part = told.has_turn, told.part
                self._answered_at = time.monotonic()
            await asyncio.sleep(TELL_S)

    def _go_alone(self) -> None:
        """Without an answer: what was told last holds, until there is nobody to ask; but never more than is safe."""
        known = self._fleet()
        is_over = time.monotonic() - self._answered_at >= AWAY_S
        if known is None or not known.is_up:
            self.part = 1.0  # of a rate that is this process's own part already
        elif is_over:
            self.part = 1 / max(1, known.gateways)
        self.has_turn = self.has_turn or is_over
