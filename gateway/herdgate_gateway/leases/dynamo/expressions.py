"""Conditions and writes as DynamoDB's expressions. Pure.

Every name and value has a placeholder, as half of the natural names are reserved words there. Parentheses stand only
where they are needed: DynamoDB refuses redundant ones.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from herdgate_gateway.leases.acts import Write
from herdgate_gateway.leases.conditions import (
    All,
    AtLeast,
    AtMost,
    Below,
    Condition,
    Either,
    Is,
    IsNot,
    Missing,
    Present,
)
from herdgate_gateway.leases.dynamo.items import attribute_of, key_attributes

__all__ = ["Placeholders", "condition_expression", "update_expression", "update_request"]


class Placeholders:
    """Names and values that expressions of one request stand for.

    Attributes:
        names: attribute names by placeholder.
        values: attribute values by placeholder.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, Any] = {}
        self._of_name: dict[str, str] = {}

    def name(self, name: str) -> str:
        """The placeholder of a name, the same each time."""
        if name not in self._of_name:
            self._of_name[name] = placeholder = f"#{len(self.names)}"
            self.names[placeholder] = name
        return self._of_name[name]

    def value(self, value: Any) -> str:
        """A new placeholder for a value."""
        placeholder = f":{len(self.values)}"
        self.values[placeholder] = attribute_of(value)
        return placeholder


class _Text(NamedTuple):
    """An expression; one that is joined of several goes into another one in parentheses."""

    text: str
    is_joined: bool = False

    def __str__(self) -> str:
        return f"({self.text})" if self.is_joined else self.text


def update_request(write: Write) -> dict[str, Any]:
    """The arguments of UpdateItem that a write is made of, but for the table and what shall come back.

    Raises:
        TypeError, ValueError: a value that no item can hold.
    """
    places = Placeholders()
    request: dict[str, Any] = {
        "Key": key_attributes(write.key),
        "ConditionExpression": condition_expression(write.condition, places),
        "ExpressionAttributeNames": places.names,
    }
    if update := update_expression(write, places):
        request["UpdateExpression"] = update
    if places.values:  # an empty map is refused
        request["ExpressionAttributeValues"] = places.values
    return request


def update_expression(write: Write, places: Placeholders) -> str:
    """What a write changes; empty: nothing."""
    sets = [f"{places.name(name)} = {places.value(value)}" for name, value in write.sets.items() if value is not None]
    removes = [places.name(name) for name, value in write.sets.items() if value is None]
    adds = [f"{places.name(name)} {places.value(more)}" for name, more in write.adds.items()]
    clauses = (("SET", sets), ("REMOVE", removes), ("ADD", adds))
    return " ".join(f"{word} {', '.join(parts)}" for word, parts in clauses if parts)


def condition_expression(condition: Condition, places: Placeholders) -> str:
    """What a write is conditional on."""
    return _text(condition, places).text


def _text(condition: Condition, places: Placeholders) -> _Text:
    match condition:
        case Is(name, value):
            return _Text(f"{places.name(name)} = {places.value(value)}")
        case IsNot(name, value):  # <> alone is also true of what is missing
            name = places.name(name)
            return _Text(f"attribute_exists({name}) AND {name} <> {places.value(value)}", is_joined=True)
        case AtLeast(name, value):
            return _Text(f"{places.name(name)} >= {places.value(value)}")
        case AtMost(name, value):
            return _Text(f"{places.name(name)} <= {places.value(value)}")
        case Below(name, value):
            return _Text(f"{places.name(name)} < {places.value(value)}")
        case Missing(name):
            return _Text(f"attribute_not_exists({places.name(name)})")
        case Present():
            return _Text(f"attribute_exists({places.name('pk')})")
        case All(parts):
            return _joined(" AND ", parts, places)
        case Either(parts):
            return _joined(" OR ", parts, places)


def _joined(word: str, parts: Sequence[Condition], places: Placeholders) -> _Text:
    if len(parts) == 1:
        return _text(parts[0], places)
    return _Text(word.join(str(_text(part, places)) for part in parts), is_joined=True)
