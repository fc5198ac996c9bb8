"""The secret that signs a fleet's tickets where users give none: the first process's, kept beside the calendar."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from herdgate.stores.redis.errors import LinkError
from herdgate.stores.redis.scripts import Script

if TYPE_CHECKING:
    from herdgate.stores.parent.link import ParentLink
    from herdgate.stores.redis.link import Link

__all__ = ["SharedSecret"]

SECRET = Script.load("secret")

Take = Callable[[Sequence[bytes]], None]


class SharedSecret:
    """What one process knows of it.

    Args:
        link: to where it is kept.
        key: its name there.
    """

    def __init__(self, link: "Link | ParentLink", key: str) -> None:
        self._link = link
        self._key = key
        self._secret: bytes | None = None  # of the fleet, or proposed to it
        self._takers: list[Take] = []
        self._agreed_with = 0  # the issuer that was there when it was agreed on

    def share(self, proposed: bytes, take: Take) -> None:
        """Call `take` with it, now and whenever it is another one."""
        self._secret = self._secret or proposed
        self._takers.append(take)
        take([self._secret])

    async def agree(self, issuer: int) -> None:
        """Ask for the one beside this calendar, unless it is the one asked before; without an answer, next time.

        A calendar found empty takes ours, so that tickets stay good.
        """
        if self._secret is None or self._agreed_with == issuer:
            return
        try:
            secret: Any = await self._link.call(SECRET, [self._key], [self._secret])
        except LinkError:
            return
        self._secret, self._agreed_with = secret, issuer
        for take in self._takers:
            take([secret])
