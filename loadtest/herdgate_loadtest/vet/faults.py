"""Faults that pydantic found, one line each: the key as it was written, what was given, the way out."""

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from herdgate_loadtest.errors import ConfigurationError

__all__ = ["read_faults", "short"]

_LONGEST_KEY = 80  # characters

_WAYS = {
    "bool_type": "write true or false",
    "float_type": "write a number",
    "int_type": "write a whole number",
    "list_type": "write a list",
    "model_type": "write a table",
    "string_type": "write a text",
    "missing": "write it",
    "extra_forbidden": "nobody knows this key here; leave it out",
    "too_short": "write one or more",
    "string_too_short": "write some text",
    "string_unicode": "write printable text, in one line",
    "finite_number": "write a finite number",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "{:,.12g} or more"),
    "less_than_equal": ("le", "at most {:,.12g}"),
    "too_long": ("max_length", "at most {:,} of them"),
    "string_too_long": ("max_length", "at most {:,} characters"),
}


def read_faults(error: ValidationError, written: Mapping[str, str]) -> Iterator[str]:
    """One line a fault. `written` tells, by name of a setting, the key it was written under."""
    for found in error.errors(include_url=False):
        if not found["loc"]:  # two settings that contradict each other
            yield found["msg"].removeprefix("Value error, ")
        else:
            yield str(ConfigurationError(_dotted(found["loc"], written), _given(found), _way(found)))


def _dotted(path: tuple[int | str, ...], written: Mapping[str, str]) -> str:
    first, *rest = path
    text = written.get(str(first), str(first))
    for part in rest:
        text += f"[{part}]" if isinstance(part, int) else f".{short(part)}"
    return text


def _given(found: Any) -> object:
    if found["type"] == "missing":
        return "nothing"
    given = found["input"]
    if given is None or isinstance(given, bool):
        return json.dumps(given)
    if isinstance(given, str):
        return repr(given)
    if isinstance(given, (int, float)):
        return given
    if isinstance(given, (dt.date, dt.time)):
        return "a date or a time"
    return "a table" if isinstance(given, Mapping) else "a list" if isinstance(given, list) else "something else"


def _way(found: Any) -> str:
    kind, context = found["type"], found.get("ctx", {})
    if kind == "literal_error":
        return f"write {context['expected']}"
    if kind in _BOUNDS:
        name, text = _BOUNDS[kind]
        return f"write {text.format(context[name])}"
    return _WAYS.get(kind) or str(found["msg"]).removeprefix("Value error, ")


def short(key: str) -> str:
    """A key as it is told: nobody reads a long one to its end."""
    return key if len(key) <= _LONGEST_KEY else key[: _LONGEST_KEY - 3] + "..."
