"""What may stand in an item: texts, whole numbers, truth values, maps and lists, as DynamoDB holds them. Pure."""

from collections.abc import Mapping
from typing import Any

__all__ = ["copied"]

_BEYOND = 10**38
"""DynamoDB keeps 38 digits."""


def copied(value: Any) -> Any:
    """A copy that shares nothing with `value`.

    Raises:
        TypeError: it is, or holds, something else.
        ValueError: a text that is no UTF-8, or a number of more than 38 digits.
    """
    match value:
        case str():
            value.encode()
            return value
        case bool():
            return value
        case int():
            return _within(value)
        case Mapping():
            return {copied(name): copied(inner) for name, inner in value.items()}
        case list():
            return [copied(inner) for inner in value]
        case _:
            what = "texts, whole numbers, truth values, maps and lists"
            raise TypeError(f"an item holds {what}, not {type(value).__name__}")


def _within(number: int) -> int:
    if not -_BEYOND < number < _BEYOND:
        raise ValueError("a number in an item has at most 38 digits")
    return number
