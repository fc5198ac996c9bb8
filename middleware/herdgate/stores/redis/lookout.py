"""Who of a fleet looks for what all of it has to know, and what it has found: written down in Redis.

Whoever reads it has to take it for a hint: that something is found does not make it so.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from herdgate.core.errors import ConfigurationError
from herdgate.fleet import Fleet
from herdgate.stores.redis.errors import LinkError, NoReply
from herdgate.stores.redis.link import Link
from herdgate.stores.redis.scripts import Script

__all__ = ["LOOKOUT", "FleetLookout", "LookoutTold"]

LOOKOUT = Script.load("lookout")

DEADLINE_S = 0.5


class LookoutTold(NamedTuple):
    """What the fleet says.

    Attributes:
        is_looking: this member is the one that looks for all.
        found: about this member, within its last four calls. None: nothing.
        members: what each is, by name, this one included; only told to the one that looks.
    """

    is_looking: bool
    found: str | None
    members: Mapping[str, str]


class FleetLookout:
    """Of one member. Belongs to one event loop.

    Args:
        fleet: in whose Redis it is written down.
        question: what is looked for; members that look for something else have nothing to do with this one.
        member: its name, never the same twice.
        every_s: seconds between two calls of `ask`, the same for all.
    """

    def __init__(self, fleet: Fleet, question: str, member: str, every_s: float) -> None:
        self._link = Link(fleet.redis, deadline_s=DEADLINE_S)
        self._key = f"{{herdgate:{fleet.name}}}:lookout:{question}"
        self._member, self._every_ms = member, str(round(every_s * 1_000))

    async def connect(self) -> None:
        """Look for Redis; what is wrong with it is said by the calendar, which asks the same one."""
        with suppress(ConfigurationError, LinkError):
            await self._link.check(self._key)

    async def ask(self, what: str, *, wants: bool) -> LookoutTold:
        """Say that this member is there, and ask what was found about it.

        Args:
            what: it is, for the one that looks; not empty.
            wants: it would look for all; False gives that up.

        Raises:
            LinkError: there is no answer.
        """
        return await self._call(what, wants, "")

    async def tell(self, what: str, found: Mapping[str, str]) -> None:
        """Say what was found, by member; without effect if another one looks by now.

        Raises:
            LinkError: there is no answer.
        """
        await self._call(what, wants=True, found=json.dumps(found))

    async def leave(self) -> None:
        """Have another one look; nothing about this one is kept.

        Raises:
            LinkError: there is no answer; the others find out by themselves.
        """
        await self._call("", wants=False, found="")

    async def aclose(self) -> None:
        """Close the connection."""
        await self._link.aclose()

    async def _call(self, what: str, wants: bool, found: str) -> LookoutTold:
        arguments = [self._member, what, self._every_ms, "1" if wants else "0", found]
        told: Any = await self._link.call(LOOKOUT, [self._key], arguments)
        try:
            words = [word.decode() for word in told[1:]]
            return LookoutTold(told[0] == 1, words[0] or None, dict(zip(words[1::2], words[2::2], strict=True)))
        except (AttributeError, IndexError, TypeError, ValueError):
            raise NoReply(self._link.where, "what came back is no reply of the script") from None
