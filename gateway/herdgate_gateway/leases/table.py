"""What carries the writes out. Every write has three outcomes, and they are never confused.

A read that fails raises; a write never does: it was done, it was lost, or nobody can tell, and then it may still be
carried out later, once or more than once.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from herdgate_gateway.leases.acts import Write
from herdgate_gateway.leases.rows import Item, Key

__all__ = ["Done", "LeaseTable", "Lost", "Outcome", "TableError", "Unknown"]


class TableError(Exception):
    """The table did not answer a read, or not in time."""


@dataclass(frozen=True, slots=True)
class Done:
    """The condition held: the row is now `item`."""

    item: Item


@dataclass(frozen=True, slots=True)
class Lost:
    """The condition did not hold: the row was `item`; None: there was none."""

    item: Item | None


@dataclass(frozen=True, slots=True)
class Unknown:
    """No answer, or one that says nothing: it may have been done, or may yet be."""

    why: str


Outcome = Done | Lost | Unknown


class LeaseTable(Protocol):
    """One table. Items handed out are the caller's own."""

    async def write(self, write: Write) -> Outcome:
        """Carry out one write, tried once."""
        ...

    async def read(self, key: Key, *, strong: bool) -> Item | None:
        """One row; None: there is none.

        Args:
            strong: sees every write that was done before; else it may be late.

        Raises:
            TableError: no answer.
        """
        ...

    async def read_many(self, keys: Collection[Key], *, strong: bool) -> Mapping[Key, Item]:
        """Those of these rows that there are; as `read`."""
        ...

    async def query(self, pk: str, *, prefix: str = "", strong: bool) -> list[Item]:
        """All rows of a partition whose sort keys begin with `prefix`, in their order; as `read`."""
        ...

    async def aclose(self) -> None:
        """Let go of what is held open."""
        ...
