"""Settings in an environment: variables of a process, or lines of KEY=VALUE.

Rules: names are those of files in upper case, with a prefix or without. An environment holds other things too: with a
prefix given, every variable that begins with it has to be a setting; without, what ends in the name of one is, and
all of those have the same prefix. Values are texts; what looks like a number, true, false, null or JSON is that, and
a comma makes a list where the setting is one.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from herdgate_loadtest.errors import UnreadableError
from herdgate_loadtest.vet.names import meaning_of

__all__ = ["parse_lines", "settings_among"]

_LISTS = frozenset(
    {
        *("delays_ms", "triggers", "retry_close_codes", "fatal_close_codes", "retry_statuses", "fatal_statuses"),
        *("stages", "layers"),
    }
)
_TEXTS = frozenset({"client_id", "preset", "strategy", "language", "reset_on", "schedule"})
_WORDS = {"true": True, "false": False, "null": None, "none": None}

_match_line = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*)").fullmatch


def parse_lines(text: str) -> dict[str, str]:
    """Variables by name. Quotes around a value go, and comments.

    Raises:
        ValueError: a line is neither a variable nor a comment, or a name stands there twice.
    """
    table: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _match_line(line.strip())
        if found is None:
            raise ValueError(f"line {number} is not KEY=VALUE")
        if found[1] in table:
            raise ValueError(f"the key {found[1]!r} stands there twice")
        table[found[1]] = _unquoted(found[2])
    return table


def _unquoted(value: str) -> str:
    end = value.find(value[0], 1) if value[:1] in {'"', "'"} else -1
    return value[1:end] if end > 0 else re.split(r"\s+#", value, maxsplit=1)[0].strip()


def settings_among(variables: Mapping[str, str], prefix: str = "") -> dict[str, tuple[str, Any]]:
    """Of the variables, those that are settings: the name without its prefix, and the value, by the name as written.

    Raises:
        UnreadableError: no prefix was given, and several of them are in use.
    """
    if prefix:
        keys = {name: name[len(prefix) :].lstrip("_").lower() for name in variables if name.startswith(prefix)}
    else:
        keys = {name: key for name in variables if (key := _setting_at_end(name.lower()))}
        _refuse_several({name[: len(name) - len(key)] for name, key in keys.items()})
    return {name: (key, _value(key, variables[name])) for name, key in keys.items()}


def _setting_at_end(name: str) -> str:
    """The longest end of a name, from a word's start, that is a setting; or an empty text."""
    words = name.split("_")
    ends = ("_".join(words[start:]) for start in range(len(words)))
    return next((end for end in ends if (meaning := meaning_of(end)) is not None and meaning.setting), "")


def _refuse_several(prefixes: set[str]) -> None:
    if len(prefixes) > 1:
        shown = ", ".join(prefix.upper() or "none" for prefix in sorted(prefixes))
        raise UnreadableError([f"has settings under several prefixes ({shown}); choose one with --key"])


def _value(key: str, text: str) -> Any:
    meaning = meaning_of(key)
    setting = meaning.setting if meaning is not None else None
    if setting in _TEXTS:
        return text
    if setting in _LISTS:
        return _as_list(text)
    return _scalar(text)


def _as_list(text: str) -> Any:
    value = _scalar(text)
    if value is None or value == "all" or isinstance(value, list):
        return value
    return [_scalar(part.strip()) for part in text.split(",")] if isinstance(value, str) else [value]


def _scalar(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
