"""The secret that signs a fleet's tickets where users give none: the first process's, kept beside the calendar.

A Redis that came back empty may be found first by a process that has just started, with a secret of its own. What the
former ones have signed stays good where they are known.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from herdgate.stores.redis.errors import LinkError
from herdgate.stores.redis.scripts import Script

if TYPE_CHECKING:
    from herdgate.stores.parent.link import ParentLink
    from herdgate.stores.redis.link import Link

__all__ = ["SharedSecret"]

SECRET = Script.load("secret")

MOST_FORMER = 2
LEAST_BYTES = 16

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
        self._former: list[bytes] = []  # that verify still, newest first
        self._agreed_with = 0  # the issuer that was there when it was agreed on

    def share(self, proposed: bytes, take: Take) -> None:
        """Call `take` with it and with the former ones, now and whenever it is another one."""
        self._secret = self._secret or proposed
        self._takers.append(take)
        take([self._secret, *self._former])

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
        if not isinstance(secret, bytes) or len(secret) < LEAST_BYTES:
            return  # what answers is no Redis
        self._agreed_with = issuer
        if secret != self._secret:
            former = [self._secret, *(known for known in self._former if known != secret)]
            self._secret, self._former = secret, former[:MOST_FORMER]
        for take in self._takers:
            take([secret, *self._former])
