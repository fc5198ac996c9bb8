"""The link of one gateway process to the Redis of its fleet.

Rules:
- One call at a time. It runs in a task of its own, so a caller that goes away never stops it half-way.
- A call is missed only if the socket, read at the deadline, holds no reply: where our own loop was late, the reader
  gets its turns first. A reply that comes later goes to `on_late`; while one is due, calls fail at once.
- While Redis is away calls fail at once; see `herdgate.stores.redis.upkeep` for how it is found again.
- Nothing is logged per call.
"""

import asyncio
import random
from collections.abc import Callable, Sequence

from herdgate.core.errors import ConfigurationError
from herdgate.stores.deadline import settled
from herdgate.stores.redis.address import Address
from herdgate.stores.redis.caller import Caller
from herdgate.stores.redis.channel import Channel, Word
from herdgate.stores.redis.diagnosis import diagnose
from herdgate.stores.redis.driver import exceptions
from herdgate.stores.redis.errors import LinkDown, LinkTimeout
from herdgate.stores.redis.routes import Cluster
from herdgate.stores.redis.scripts import Script
from herdgate.stores.redis.selftest import self_test
from herdgate.stores.redis.upkeep import Upkeep, probe_key

__all__ = ["LATE_S", "Link"]

LATE_S = 1.0
"""Seconds after which a call without a reply costs the connection."""


class Link:
    """One connection to the Redis of a fleet; at most one call in flight.

    Args:
        url: see `herdgate.stores.redis.address`.
        deadline_s: seconds a call may take, above 0 and below 1.
        rng: uniform numbers in [0, 1).

    Attributes:
        on_late: gets each reply that nobody waits for any more.

    Raises:
        ConfigurationError: the URL or the deadline is wrong.
    """

    def __init__(self, url: str, *, deadline_s: float = 0.05, rng: Callable[[], float] = random.random) -> None:
        if not 0 < deadline_s < LATE_S:
            raise ConfigurationError("deadline_s", deadline_s, f"give seconds above 0 and below {LATE_S:g}")
        self._upkeep = Upkeep(Address.parse(url), rng)
        self._caller = Caller(self._upkeep)
        self._deadline_s = deadline_s
        self._call: asyncio.Task[object] | None = None
        self._is_awaited = False
        self._watch: asyncio.Task[None] | None = None
        self.on_late: Callable[[object], None] | None = None

    @property
    def calls(self) -> int:
        """Scripts sent so far (EVALSHA and EVAL)."""
        return self._caller.calls

    @property
    def where(self) -> str:
        """The server's address, without a password."""
        return str(self._upkeep.address)

    @property
    def is_up(self) -> bool:
        """True while a call would be sent: there is a connection, and no reply is due on it."""
        return self._upkeep.channel is not None and self._call is None

    @property
    def down_since(self) -> float | None:
        """When service ended, in monotonic seconds; None while calls are answered."""
        return self._upkeep.down_since

    async def call(self, script: Script, keys: Sequence[str | bytes], args: Sequence[Word]) -> object:
        """Run a script, and return its reply: bytes, int, None or a list of these.

        Args:
            script: named by its SHA-1, and sent whole only to a server that has not seen it.
            keys: all with one hash tag.
            args: its arguments.

        Raises:
            LinkTimeout: no reply within the deadline.
            LinkDown: not sent, or refused by a Redis that gives no service.
            ScriptFailed: the script raised an error.
            RuntimeError: another call is in flight and awaited.
        """
        channel = self._ready()
        if keys:
            self._upkeep.key = probe_key(keys[0])
        self._call = call = asyncio.create_task(self._caller.call(channel, script, keys, args))
        call.add_done_callback(self._ended)
        self._is_awaited = True
        try:
            await asyncio.sleep(0)  # the request is on its way when this returns: from here on the deadline counts
            answered = await settled(call, self._deadline_s)
        except asyncio.CancelledError:
            self._leave(call)
            raise
        finally:
            self._is_awaited = False
        if answered:
            return call.result()
        self._leave(call)
        raise LinkTimeout(self.where, f"no reply within {self._deadline_s * 1000:g} ms")

    async def check(self, key: str | bytes = "{herdgate}") -> None:
        """Connect anew, and see whether this Redis can keep the state of a fleet. Not to be run beside a call.

        Args:
            key: any key of the fleet, for its hash tag; a key beside it is written and deleted.

        Raises:
            ConfigurationError: it may drop our keys, lacks or forbids something, or is a cluster and the URL says not.
            LinkDown: it cannot be reached or serves nobody now. It is tried again in the background, until `aclose`;
                saying so is left to the caller (`outages.say`).
        """
        upkeep = self._upkeep
        upkeep.key = probe_key(key)
        try:
            channel = await upkeep.connect(probed=False)
            lost, channel.on_end = channel.on_end, None  # what ends it now is told by what is asked on it
            await self_test(channel, upkeep.key, where=self.where, is_cluster=isinstance(upkeep.route, Cluster))
            channel.on_end = lost
        except LinkDown as down:
            upkeep.lose(upkeep.channel, down, quietly=True)
            raise
        except (exceptions.RedisError, OSError) as error:
            why = await diagnose(error, upkeep.address)
            upkeep.lose(upkeep.channel, why, quietly=True)
            raise why from error
        upkeep.served()

    async def aclose(self) -> None:
        """Close the connection, and stop looking for one. A call in flight ends with `LinkDown`."""
        await self._upkeep.aclose()
        left = {task for task in (self._call, self._watch) if task is not None and not task.done()}
        if self._watch is not None:
            self._watch.cancel()
        if left:
            await asyncio.wait(left)

    def _ready(self) -> Channel:
        """The channel to call on. Raises what `call` raises where there is none."""
        if self._is_awaited:
            raise RuntimeError("this link has a call in flight: await it first")
        if self._call is not None:
            raise LinkDown(self.where, "an earlier call is still without its reply")
        if (channel := self._upkeep.channel) is None:
            self._upkeep.seek()
            why = self._upkeep.why
            raise LinkDown(why.where, why.reason) from why.__cause__
        return channel

    def _ended(self, call: asyncio.Task[object]) -> None:
        self._call = None

    def _leave(self, call: asyncio.Task[object]) -> None:
        """Nobody waits for this call any more."""
        call.add_done_callback(self._hand_over)
        self._watch = asyncio.create_task(self._give_up(call))

    def _hand_over(self, call: asyncio.Task[object]) -> None:
        if not call.cancelled() and call.exception() is None and self.on_late is not None:
            self.on_late(call.result())

    async def _give_up(self, call: asyncio.Task[object]) -> None:
        if not await settled(call, LATE_S - self._deadline_s):
            self._upkeep.lose(self._upkeep.channel, LinkDown(self.where, f"no reply for {LATE_S:g} s"))
            call.cancel()  # it may be on its way to another node
