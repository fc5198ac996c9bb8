"""Which gateways of a fleet drain, for one process that does: written down in Redis, as long as it is told again."""

from contextlib import suppress
from typing import Any, NamedTuple

from herdgate.core.errors import ConfigurationError
from herdgate.fleet import Fleet
from herdgate.stores.redis.errors import LinkError, NoReply
from herdgate.stores.redis.link import Link
from herdgate.stores.redis.scripts import Script

__all__ = ["DRAINS", "DrainTold", "FleetDrains"]

DRAINS = Script.load("drains")


class DrainTold(NamedTuple):
    """What the fleet says.

    Attributes:
        has_turn: it may drain now.
        part: of all sockets that are left to those that drain, 0 to 1.
    """

    has_turn: bool
    part: float


class FleetDrains:
    """Of one process. Belongs to one event loop.

    Args:
        fleet: in whose Redis it is written down.
        process: its name in the fleet.
        group: the same in all processes of one gateway.
        processes: how many those are.
    """

    def __init__(self, fleet: Fleet, process: str, group: str, processes: int = 1) -> None:
        self._link = Link(fleet.redis)
        self._key = f"{{herdgate:{fleet.name}}}:calendar"
        self._process, self._group, self._processes = process, group, processes

    async def connect(self) -> None:
        """Look for Redis; what is wrong with it is said by the calendar, which asks the same one."""
        with suppress(ConfigurationError, LinkError):
            await self._link.check(self._key)

    async def tell(self, left: int, most: int | None, *, waits: bool) -> DrainTold:
        """Say that it drains, or waits for its turn; to be said again every second at least.

        Args:
            left: sockets it has still to move.
            most: gateways that may drain at once. None: half of them, and one at least.
            waits: False: it drains whatever the others do.

        Raises:
            LinkError: there is no answer.
        """
        told = await self._call(str(left), "" if most is None else str(most), "1" if waits else "0")
        try:
            return DrainTold(told[0] == 1, float(told[1]))
        except (IndexError, TypeError, ValueError):
            raise NoReply(self._link.where, "what came back is no reply of the script") from None

    async def leave(self) -> None:
        """It drains no more.

        Raises:
            LinkError: there is no answer; it is forgotten all the same, within 3 s.
        """
        await self._call("", "", "0")

    async def aclose(self) -> None:
        """Close the connection."""
        await self._link.aclose()

    async def _call(self, left: str, most: str, waits: str) -> Any:
        names = [self._process, self._group]
        return await self._link.call(DRAINS, [self._key], [*names, left, most, waits, self._processes])
