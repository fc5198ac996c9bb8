"""A table in the memory of this process: for tests and demonstrations, and gone with it.

Nothing is awaited between looking and writing, so that a write is as atomic as DynamoDB's. Reads are always strong.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from herdgate_gateway.leases.acts import Write
from herdgate_gateway.leases.rows import Item, Key
from herdgate_gateway.leases.table import Done, Lost, Outcome
from herdgate_gateway.leases.values import copied

__all__ = ["MemoryLeases"]


class MemoryLeases:
    """A `LeaseTable` that always answers, in the next turn of the event loop."""

    def __init__(self) -> None:
        self._partitions: dict[str, dict[str, dict[str, Any]]] = {}

    async def write(self, write: Write) -> Outcome:
        """Carry out one write.

        Raises:
            TypeError, ValueError: a value that no item can hold.
        """
        sets = {name: None if value is None else copied(value) for name, value in write.sets.items()}
        await asyncio.sleep(0)
        before = self._find(write.key)
        if not write.condition.holds(before):
            return Lost(None if before is None else copied(before))
        after = {**write.key._asdict(), **(before or {}), **sets}
        for name, more in write.adds.items():
            after[name] = after.get(name, 0) + more
        after = {name: value for name, value in after.items() if value is not None}
        self._partitions.setdefault(write.key.pk, {})[write.key.sk] = after
        return Done(copied(after))

    async def read(self, key: Key, *, strong: bool) -> Item | None:
        """One row; None: there is none."""
        return (await self.read_many([key], strong=strong)).get(key)

    async def read_many(self, keys: Collection[Key], *, strong: bool) -> Mapping[Key, Item]:
        """Those of these rows that there are."""
        await asyncio.sleep(0)
        return {key: copied(item) for key in keys if (item := self._find(key)) is not None}

    async def query(self, pk: str, *, prefix: str = "", strong: bool) -> list[Item]:
        """All rows of a partition whose sort keys begin with `prefix`, in their order."""
        await asyncio.sleep(0)
        partition = self._partitions.get(pk, {})
        return [copied(partition[sk]) for sk in sorted(partition) if sk.startswith(prefix)]

    async def aclose(self) -> None:
        """Nothing is held open."""

    def _find(self, key: Key) -> dict[str, Any] | None:
        return self._partitions.get(key.pk, {}).get(key.sk)
