"""One call of a script, from its request to its reply: by SHA-1, or whole, and to the node that a cluster names.

EVAL is sent only on NOSCRIPT: a script cache is per server, and empty after a restart or a failover. A redirection is
followed: MOVED for good (the channel moves), ASK for this one call.
"""

from collections.abc import Sequence
from typing import Any

from herdgate.stores.redis.channel import Channel, Word
from herdgate.stores.redis.driver import exceptions
from herdgate.stores.redis.errors import LinkDown, ScriptFailed
from herdgate.stores.redis.faults import fault
from herdgate.stores.redis.scripts import Script
from herdgate.stores.redis.upkeep import Upkeep

__all__ = ["Caller"]

HOPS = 5  # requests for one call: twice whole, as each server may not know the script, and redirections in between


class Caller:
    """Makes calls, and tells the upkeep how they went.

    Attributes:
        calls: scripts sent so far (EVALSHA and EVAL).
    """

    def __init__(self, upkeep: Upkeep) -> None:
        self._upkeep = upkeep
        self.calls = 0

    async def call(self, channel: Channel, script: Script, keys: Sequence[str | bytes], args: Sequence[Word]) -> object:
        """The reply, however long it takes.

        Raises:
            LinkDown: the channel ended, or the server gives no service; the channel is dropped.
            ScriptFailed: the script raised an error.
        """
        self._channel = channel
        try:
            reply = await self._follow(script, [len(keys), *keys, *args])
        except (exceptions.RedisError, OSError) as error:
            raise self._told(fault(error, str(self._upkeep.address))) from error
        self._upkeep.served()
        return reply

    def _told(self, error: LinkDown | ScriptFailed) -> LinkDown | ScriptFailed:
        if isinstance(error, LinkDown):
            self._upkeep.lose(self._channel, error)
        else:
            self._upkeep.served()
        return error

    async def _follow(self, script: Script, operands: list[Word]) -> Any:
        is_known = True
        for _ in range(HOPS):
            try:
                return await self._send(self._channel, script, operands, is_known=is_known)
            except exceptions.NoScriptError:
                is_known = False
            except exceptions.MovedError as moved:
                self._channel = await self._upkeep.move(moved.node_addr)
                is_known = True
            except exceptions.AskError as ask:
                return await self._ask(ask, script, operands)
        raise exceptions.ClusterDownError("CLUSTERDOWN its nodes send us from one to the other")

    async def _send(self, channel: Channel, script: Script, operands: list[Word], *, is_known: bool) -> Any:
        self.calls += 1
        if is_known:
            return await channel.request("EVALSHA", script.sha, *operands)
        return await channel.request("EVAL", script.text, *operands)

    async def _ask(self, ask: exceptions.AskError, script: Script, operands: list[Word]) -> Any:
        """Call on the node that a slot is moving to; the slot is not there yet, so the channel stays."""
        channel = await self._upkeep.visit(ask.node_addr)
        try:
            await channel.request("ASKING")
            return await self._send(channel, script, operands, is_known=False)
        finally:
            channel.close()
