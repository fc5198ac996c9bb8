"""Items as Python values and as DynamoDB's attribute values. Exact: no number goes through a float. Pure."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from herdgate_gateway.leases.rows import Item, Key
from herdgate_gateway.leases.values import copied

__all__ = ["attribute_of", "item_of", "key_attributes", "value_of"]


def attribute_of(value: Any) -> dict[str, Any]:
    """A text, a whole number, a truth value, or a map or list of them, for DynamoDB.

    Raises:
        TypeError, ValueError: see `values.copied`.
    """
    return _attribute_of(copied(value))


def value_of(attribute: Mapping[str, Any]) -> Any:
    """What an attribute holds.

    Values of other types, which somebody else put there, come as they are: one of them must not make a row unreadable.
    """
    ((kind, value),) = attribute.items()
    match kind:
        case "N":
            return _number(value)
        case "M":
            return {name: value_of(inner) for name, inner in value.items()}
        case "L":
            return [value_of(inner) for inner in value]
        case "NULL":
            return None
        case _:
            return value


def item_of(attributes: Mapping[str, Any]) -> Item:
    """A whole row."""
    return {name: value_of(attribute) for name, attribute in attributes.items()}


def key_attributes(key: Key) -> dict[str, Any]:
    """The key of a row, for DynamoDB."""
    return {name: attribute_of(part) for name, part in key._asdict().items()}


def _attribute_of(value: Any) -> dict[str, Any]:
    match value:
        case str():
            return {"S": value}
        case bool():
            return {"BOOL": value}
        case int():
            return {"N": str(value)}
        case list():
            return {"L": [_attribute_of(inner) for inner in value]}
        case _:
            return {"M": {name: _attribute_of(inner) for name, inner in value.items()}}


def _number(text: str) -> int | Decimal:
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else number
