"""What a write is conditional on, as data: a table in memory evaluates it, DynamoDB gets it as an expression. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from herdgate_gateway.leases.rows import Item

__all__ = ["ABSENT", "PRESENT", "All", "AtLeast", "AtMost", "Below", "Condition", "Either", "Is", "IsNot", "Missing"]


@dataclass(frozen=True, slots=True)
class Is:
    """The attribute is there and has this value."""

    name: str
    value: Any

    def holds(self, item: Item | None) -> bool:
        """True if it holds for a row; None: there is none."""
        return item is not None and self.name in item and item[self.name] == self.value


@dataclass(frozen=True, slots=True)
class IsNot:
    """The attribute is there and has another value."""

    name: str
    value: Any

    def holds(self, item: Item | None) -> bool:
        """As `Is.holds`."""
        return item is not None and self.name in item and item[self.name] != self.value


@dataclass(frozen=True, slots=True)
class AtMost:
    """The number is there and no higher than this."""

    name: str
    value: int

    def holds(self, item: Item | None) -> bool:
        """As `Is.holds`."""
        return item is not None and self.name in item and item[self.name] <= self.value


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The number is there and no lower than this."""

    name: str
    value: int

    def holds(self, item: Item | None) -> bool:
        """As `Is.holds`."""
        return item is not None and self.name in item and item[self.name] >= self.value


@dataclass(frozen=True, slots=True)
class Below:
    """The number is there and lower than this."""

    name: str
    value: int

    def holds(self, item: Item | None) -> bool:
        """As `Is.holds`."""
        return item is not None and self.name in item and item[self.name] < self.value


@dataclass(frozen=True, slots=True)
class Missing:
    """The attribute is not there, or the row is not."""

    name: str

    def holds(self, item: Item | None) -> bool:
        """As `Is.holds`."""
        return item is None or self.name not in item


@dataclass(frozen=True, slots=True)
class Present:
    """The row is there."""

    def holds(self, item: Item | None) -> bool:
        """As `Is.holds`."""
        return item is not None


@dataclass(frozen=True, slots=True)
class All:
    """Every one of them holds."""

    parts: Sequence["Condition"]

    def holds(self, item: Item | None) -> bool:
        """As `Is.holds`."""
        return all(part.holds(item) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Either:
    """At least one of them holds."""

    parts: Sequence["Condition"]

    def holds(self, item: Item | None) -> bool:
        """As `Is.holds`."""
        return any(part.holds(item) for part in self.parts)


Condition = Is | IsNot | AtLeast | AtMost | Below | Missing | Present | All | Either

ABSENT = Missing("pk")
"""There is no such row."""

PRESENT = Present()
