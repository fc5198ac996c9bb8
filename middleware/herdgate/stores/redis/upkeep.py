"""Keeps one channel to the server of a fleet: opens it, notices that it is gone, and looks for another.

Rules:
- Looking goes on in the background, after pauses that double from 0.05 s to 2 s (full jitter), with or without calls.
- A channel counts only if its server takes a write that changes nothing: not a replica, not one that loads or is full.
- The pauses start anew when a call was answered, not when a channel was opened: a server that takes connections and
  refuses every call is not asked again and again.
- That service has ended, and that a call is answered again, is said as `herdgate.stores.redis.outages` has it.
"""

import asyncio
from collections.abc import Callable

from herdgate.stores.redis import outages
from herdgate.stores.redis.address import Address, Node
from herdgate.stores.redis.channel import Channel
from herdgate.stores.redis.diagnosis import diagnose
from herdgate.stores.redis.driver import exceptions
from herdgate.stores.redis.errors import LinkDown
from herdgate.stores.redis.faults import fault, reason_of
from herdgate.stores.redis.routes import Cluster, route_of

__all__ = ["FIRST_PAUSE_S", "LONGEST_PAUSE_S", "Upkeep", "probe_key"]

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0


class Upkeep:
    """The channel of a link, or why there is none.

    Args:
        address: of Redis.
        rng: uniform numbers in [0, 1).

    Attributes:
        channel: None while there is none.
        key: its slot is the one to find, in a cluster; nothing is ever stored there.
        why: the last reason for there being no channel.
        down_since: monotonic seconds of the moment service ended; None while calls are answered.
    """

    def __init__(self, address: Address, rng: Callable[[], float]) -> None:
        self.address = address
        self.route = route_of(address)
        self._rng = rng
        self._seeker: asyncio.Task[None] | None = None
        self._failures = 0
        self._is_closed = False
        self.channel: Channel | None = None
        self.key = probe_key("{herdgate}")
        self.why = LinkDown(str(address), "not connected yet")
        self.down_since: float | None = None

    async def connect(self, *, probed: bool = True) -> Channel:
        """Open a channel, and make it the one.

        Raises:
            LinkDown: there is none to be had, or, where `probed`, its server takes no writes.
        """
        try:
            channel = await self.route.open(self.key)
            try:
                if probed:
                    await _probe(channel, self.key)
            except BaseException:
                await channel.aclose()
                raise
        except (exceptions.RedisError, OSError) as error:
            raise await diagnose(error, self.address) from error
        return self._take(channel)

    async def move(self, node: Node) -> Channel:
        """As `visit`, and make it the one."""
        return self._take(await self.visit(node))

    async def visit(self, node: Node) -> Channel:
        """Open a channel to a node that a cluster named, beside the one. Raises an error of redis-py or OSError."""
        if not isinstance(self.route, Cluster):
            raise exceptions.ClusterDownError("a node of a cluster; write redis+cluster://")
        return await self.route.open_node(node)

    def lose(self, channel: Channel | None, why: LinkDown, *, quietly: bool = False) -> None:
        """Drop a channel, and look for another; nothing if it is not the one any more.

        Args:
            quietly: whoever is told says so, and what this process does meanwhile.
        """
        if channel is not self.channel:
            return
        self.channel = None
        if channel is not None:
            channel.close()
        self._fail(why, quietly=quietly)
        self.seek()

    def seek(self) -> None:
        """Look for a channel in the background, if nobody does."""
        if not self._is_closed and (self._seeker is None or self._seeker.done()):
            self._seeker = asyncio.create_task(self._seek())

    def served(self) -> None:
        """A call was answered."""
        self._failures = 0
        if self.down_since is not None:
            away_s = asyncio.get_running_loop().time() - self.down_since
            self.down_since = None
            outages.end(str(self.address), self, away_s)

    async def aclose(self) -> None:
        """Close the channel, and stop looking for one."""
        self._is_closed = True
        self.why = LinkDown(str(self.address), "the link is closed")
        outages.leave(str(self.address), self)
        channel, self.channel = self.channel, None
        if self._seeker is not None:
            self._seeker.cancel()
            await asyncio.wait({self._seeker})
        if channel is not None:
            await channel.aclose()

    async def _seek(self) -> None:
        while self.channel is None and not self._is_closed:
            await asyncio.sleep(self._rng() * min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(self._failures, 16)))
            self._failures += 1
            try:
                await self.connect()
            except LinkDown as why:
                self._fail(why)

    def _take(self, channel: Channel) -> Channel:
        if self._is_closed:
            channel.close()
            raise LinkDown(str(self.address), self.why.reason)
        if self.channel is not None:
            self.channel.close()
        self.channel = channel
        channel.on_end = lambda error: self.lose(
            channel, LinkDown(str(self.address), reason_of(error, str(self.address)))
        )
        return channel

    def _fail(self, why: LinkDown, *, quietly: bool = False) -> None:
        if self._is_closed:
            return
        self.why = why
        if self.down_since is None:
            self.down_since = asyncio.get_running_loop().time()
            outages.begin(str(self.address), self)
        if not quietly:
            outages.say(why)


def probe_key(key: str | bytes) -> bytes:
    """A key with the hash tag of another, at which nothing is stored."""
    tag = (key.encode() if isinstance(key, str) else key).partition(b"}")[0]
    return tag + b"}:probe"


async def _probe(channel: Channel, key: bytes) -> None:
    """Ask for a write of nothing. A refusal that says nothing about the state of the server is none of its business.

    Raises:
        redis.exceptions.RedisError, TimeoutError: the server takes no writes now.
    """
    try:
        await channel.ask("SETRANGE", key, 0, b"")  # creates no key
    except exceptions.NoPermissionError:
        return  # access may be limited to what scripts need
    except exceptions.ResponseError as error:
        if isinstance(fault(error, ""), LinkDown):
            raise
