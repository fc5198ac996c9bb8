"""What an id and attrs of a connection may be; each fault is one line that says how to write it. Pure."""

import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

from herdgate.core.errors import printable
from herdgate_gateway.errors import ConfigurationError
from herdgate_gateway.leases.values import copied

__all__ = ["MOST_ATTRS", "canonical", "check_attrs", "check_id", "read_attrs"]

MOST_ATTRS = 16 * 1024
"""Bytes of attrs, as JSON without spaces."""

_MOST_NUMBER = 10**38 - 1  # that DynamoDB keeps
_MOST_DEPTH = 30  # DynamoDB takes 32, and the row and attrs are two of them
_ID = re.compile(r"[\x21-\x7e]{1,128}")  # as `connection_ids` has it
_ID_WAY_OUT = "write 1 to 128 characters of printable ASCII, without spaces"
_JSON_WAY_OUT = 'write a JSON object, such as {"url": "wss://host/stream"}'
_VALUES_WAY_OUT = "write texts, whole numbers, true and false, and lists and objects of them"
_NAMES_WAY_OUT = "give each value a name of at least one character"
_TEXT_WAY_OUT = "write it as a text"
_MOST_PATH = 30  # characters of where a value is


def check_id(connection_id: str) -> str:
    """The id, if it is one.

    Raises:
        ConfigurationError: it is not.
    """
    if not _ID.fullmatch(connection_id):
        raise ConfigurationError("connection id", connection_id, _ID_WAY_OUT)
    return connection_id


def read_attrs(text: str, field: str = "attrs") -> Mapping[str, Any]:
    """Attrs that are written as JSON.

    Raises:
        ConfigurationError: they are not, or cannot be held; it names the field.
    """
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        raise ConfigurationError(field, text, _JSON_WAY_OUT) from None
    return check_attrs(read, field)


def check_attrs(attrs: object, field: str = "attrs") -> Mapping[str, Any]:
    """A copy of attrs that the table can hold.

    Raises:
        ConfigurationError: it cannot hold them; it names the field.
    """
    if not isinstance(attrs, Mapping):
        raise ConfigurationError(field, attrs, _JSON_WAY_OUT)
    _check_inside(attrs, field, "", _MOST_DEPTH)
    try:
        held: Mapping[str, Any] = copied(attrs)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(field, str(error), _VALUES_WAY_OUT) from None
    size = len(canonical(held).encode())
    if size > MOST_ATTRS:
        way_out = f"keep them to {MOST_ATTRS:,} bytes, and what is larger elsewhere"
        raise ConfigurationError(field, f"{size:,} bytes", way_out)
    return held


def canonical(attrs: Mapping[str, Any]) -> str:
    """Attrs as one text: the same for the same attrs, and no other. Python takes true for 1."""
    return json.dumps(attrs, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=repr)


def _check_inside(value: object, field: str, path: str, depth: int) -> None:
    """Check names, depth, and what only JSON has."""
    if depth == 0 and isinstance(value, Mapping | list):
        raise ConfigurationError(field, "a value too deep inside", f"keep them to {_MOST_DEPTH} levels")
    if isinstance(value, Mapping):
        if any(not isinstance(name, str) or not name for name in value):
            raise ConfigurationError(field, "a name that is none", _NAMES_WAY_OUT)
        for name, inner in value.items():
            _check_inside(inner, field, f"{path}.{name}" if path else name, depth - 1)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _check_inside(inner, field, f"{path}[{number}]", depth - 1)
    elif isinstance(value, float):
        raise ConfigurationError(field, f"{value}, {_kind(value)}, at {_shown(path)}", _TEXT_WAY_OUT)
    elif isinstance(value, int) and abs(value) > _MOST_NUMBER:
        raise ConfigurationError(field, f"a number of more than 38 digits at {_shown(path)}", _TEXT_WAY_OUT)
    elif value is None:
        raise ConfigurationError(field, f"null at {_shown(path)}", f"leave it out, or {_TEXT_WAY_OUT}")


def _kind(number: float) -> str:
    return "a fraction" if isfinite(number) else "no number"


def _shown(path: str) -> str:
    """Where a value is, on one short line."""
    text = printable(path)
    return text if len(text) <= _MOST_PATH else f"...{text[3 - _MOST_PATH :]}"
