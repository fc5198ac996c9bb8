"""Connections as they shall be: started, stopped, found and listed in the lease table.

Rules:
- what is asked for may be asked for again: starting what is started, or stopping what is stopped, changes nothing more;
- one that is stopped keeps its row for a day and is garbage then; one that is started again is no garbage;
- workers are told after the table has it. News may be lost: they look by themselves within a minute.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from typing import Any

from herdgate_gateway.connections.limits import check_attrs, check_id
from herdgate_gateway.leases.acts import Write, want_started, want_stopped
from herdgate_gateway.leases.at_once import for_each
from herdgate_gateway.leases.channel import Publishing
from herdgate_gateway.leases.rows import SHARDS, ConnectionRow, Want, connection_key, shard_key, shard_of
from herdgate_gateway.leases.table import Done, LeaseTable, Lost, TableError

__all__ = ["KEPT_S", "Connections"]

KEPT_S = 86_400
"""Seconds that the row of a stopped connection is kept, at least."""

_AT_ONCE = 32
_TRIES = 3


class Connections:
    """Those of one fleet. It belongs to the event loop that it is used in.

    Args:
        table: closed with it.
        fleet: its name.
        channel: where workers are told, closed with it; None: they are not.
        unix_time: seconds; says only when a row is garbage.

    Attributes:
        could_tell: False once Redis has not taken what the workers had to hear.
    """

    def __init__(
        self,
        table: LeaseTable,
        fleet: str,
        channel: Publishing | None = None,
        *,
        unix_time: Callable[[], float] = time.time,
    ) -> None:
        self._table, self._fleet, self._channel, self._unix_time = table, fleet, channel, unix_time
        self.could_tell = True

    async def start(self, ids: Collection[str], attrs: Mapping[str, Any] | None = None) -> Mapping[str, ConnectionRow]:
        """Have these run; those that there are not are made.

        Args:
            attrs: for who serves them; None: those that are there stay.

        Returns:
            Their rows, by id, in that order.

        Raises:
            ConfigurationError: an id or attrs that cannot be; nothing was done.
            TableError: nobody knows whether all of it was done. It may be repeated.
        """
        checked = None if attrs is None else check_attrs(attrs)
        return await self._change(ids, lambda name: want_started(self._fleet, name, checked))

    async def stop(self, ids: Collection[str]) -> Mapping[str, ConnectionRow]:
        """Have these not run any more; as `start`, and those that there are not are left out."""
        garbage_at = int(self._unix_time()) + KEPT_S
        return await self._change(ids, lambda name: want_stopped(self._fleet, name, garbage_at))

    async def get(self, connection_id: str) -> ConnectionRow | None:
        """One; None: there is none. As `get_many`."""
        return (await self.get_many([connection_id])).get(connection_id)

    async def get_many(self, ids: Collection[str]) -> Mapping[str, ConnectionRow]:
        """Those of these that there are, by id, in that order, as they are now.

        Raises:
            ConfigurationError: an id that cannot be one.
            TableError: no answer.
        """
        keys = {connection_key(self._fleet, check_id(name)): name for name in ids}
        found = await self._table.read_many(keys, strong=True)
        return {name: ConnectionRow.of(found[key]) for key, name in keys.items() if key in found}

    async def list(self, want: Want | None = None, limit: int | None = None) -> AsyncIterator[ConnectionRow]:
        """All, in the order of their shards, as they were a moment ago.

        Args:
            want: only those of which that is wanted.
            limit: so many at most.

        Raises:
            TableError: no answer.
        """
        left = limit
        for first in range(0, SHARDS, _AT_ONCE):
            for row in await self._rows(range(first, min(first + _AT_ONCE, SHARDS))):
                if want not in (None, row.want):
                    continue
                if left == 0:
                    return
                yield row
                left = None if left is None else left - 1

    async def aclose(self) -> None:
        """Close the table and the channel."""
        await self._table.aclose()
        if self._channel is not None:
            await self._channel.aclose()

    async def _rows(self, shards: Iterable[int]) -> Iterable[ConnectionRow]:
        keys = [shard_key(self._fleet, shard).pk for shard in shards]
        pages = await asyncio.gather(*(self._table.query(pk, prefix="C#", strong=False) for pk in keys))
        return [ConnectionRow.of(item) for page in pages for item in page]

    async def _change(self, ids: Collection[str], write: Callable[[str], Write]) -> Mapping[str, ConnectionRow]:
        names = [check_id(name) for name in dict.fromkeys(ids)]
        changed: dict[str, ConnectionRow] = {}

        async def change(name: str) -> None:
            if (row := await self._carry_out(write(name))) is not None:
                changed[name] = row

        try:
            await for_each(names, change, most=_AT_ONCE)
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            await self._tell(names)  # all of them: what failed may have been done
        return {name: changed[name] for name in names if name in changed}

    async def _carry_out(self, write: Write) -> ConnectionRow | None:
        """The row; None: there is none. The very same write may be done twice."""
        why = ""
        for _ in range(_TRIES):
            outcome = await self._table.write(write)
            if isinstance(outcome, Done):
                return ConnectionRow.of(outcome.item)
            if isinstance(outcome, Lost):
                return None
            why = outcome.why
        raise TableError(why)

    async def _tell(self, ids: Iterable[str]) -> None:
        shards = {shard_of(name) for name in ids}
        if shards and self._channel is not None and not await self._channel.publish({"wants": sorted(shards)}):
            self.could_tell = False
