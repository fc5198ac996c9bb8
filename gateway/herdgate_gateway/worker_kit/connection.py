"""What an app may do with the lease table for the connection of one socket. Who asks for nothing has nothing written.

    record = await scope["state"]["connection"].record()      None: there is no row of it
    await scope["state"]["checkpoint"](seq)

The first of these claims the connection, so that no owner of before changes anything any more.
"""

import asyncio

from herdgate_gateway.leases.effects import Effects, NotOwnerError
from herdgate_gateway.leases.rows import ConnectionRow, connection_key
from herdgate_gateway.worker_kit.duty import Parts
from herdgate_gateway.worker_kit.errors import NoSuchConnectionError
from herdgate_gateway.worker_kit.stamps import Stamp

__all__ = ["Connection"]


class Connection:
    """Of one socket.

    Attributes:
        id: as the gateway found it.
        shard: that it belongs to.
        epoch: of the ownership that the socket was accepted under.
    """

    def __init__(self, parts: Parts, stamp: Stamp) -> None:
        self._parts = parts
        self.id, self.shard, self.epoch = stamp.connection_id, stamp.shard, stamp.epoch
        self._row: ConnectionRow | None = None
        self._claiming = asyncio.Lock()

    async def record(self) -> ConnectionRow | None:
        """Its row, as it was when it was claimed, which this does; None: there is none.

        Raises:
            NotOwnerError: the shard is not ours any more.
            UnknownOutcomeError: the table did not say: try again.
        """
        async with self._claiming:
            if self._row is None:
                self._row = await self._claim()
            return self._row

    async def checkpoint(self, last_seq: int) -> None:
        """Say how far it has come, for whoever serves it next; nothing changes for what is not newer.

        Raises:
            NoSuchConnectionError: there is no row of it.
            NotOwnerError: the shard is not ours any more.
            UnknownOutcomeError: the table did not say: try again.
        """
        if await self.record() is None:
            raise NoSuchConnectionError(f"there is no row of connection {self.id!r}: start it, then checkpoint")
        await self._effects().checkpoint(self.id, self.epoch, last_seq)

    async def _claim(self) -> ConnectionRow | None:
        try:
            return await self._effects().claim_row(self.id)
        except NotOwnerError:
            self._effects()
            key = connection_key(self._parts.fleet, self.id)
            if await self._parts.table.read(key, strong=True) is None:
                return None
            raise

    def _effects(self) -> Effects:
        owner = self._parts.owner
        effects = owner.effects
        if effects is None or owner.epoch(self.shard) != self.epoch:
            raise NotOwnerError(f"connection {self.id!r} has changed hands")
        return effects
