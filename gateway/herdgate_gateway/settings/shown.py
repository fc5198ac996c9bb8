"""Settings as text: all values in force, secrets masked, and where each one is from."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from pydantic import SecretStr

from herdgate_gateway.settings.model import Settings
from herdgate_gateway.settings.table import Path, Table, dotted, entries, holds_tables

__all__ = ["as_json", "as_toml"]


def as_json(settings: Settings) -> str:
    """`settings`, nested as in the file with null for what is not set, and `sources`, by dotted field."""
    return json.dumps({"settings": _plain(settings), "sources": dict(settings.sources)}, indent=2)


def as_toml(settings: Settings) -> str:
    """TOML that can be loaded again, but for its secrets: one value a line, its source behind it.

    What is not set is its word (`"none"`), or a comment where it has none.
    """
    return "\n".join(_lines(settings, (), settings.sources)) + "\n"


def _lines(table: Table, at: Path, sources: Mapping[str, str]) -> Iterator[str]:
    inner: list[tuple[str, Table, Path]] = []
    for key, value, word, _ in entries(table):
        path = (*at, key)
        name = ".".join(part for part in path if isinstance(part, str))
        if isinstance(value, Table):
            inner.append((f"[{name}]", value, path))
        elif holds_tables(value):
            inner += [(f"[[{name}]]", entry, (*path, position)) for position, entry in enumerate(value)]
        else:
            yield f"{_line(key, value, word)}  # {sources[dotted(path)]}"
    for header, value, path in inner:  # in TOML, all that follows a header belongs to it
        yield f"\n{header}"
        yield from _lines(value, path, sources)


def _plain(value: Any) -> Any:
    if isinstance(value, Table):
        return {entry.key: _plain(entry.value) for entry in entries(value)}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return str(value) if isinstance(value, SecretStr | FilePath) else value  # pydantic masks its SecretStr


def _line(key: str, value: object, word: str | None) -> str:
    if value is None and word is None:
        return f"# {key} is not set"
    return f"{key} = {_literal(word if value is None else value)}"


def _literal(value: Any) -> str:
    if isinstance(value, Mapping):
        # The only table that is a value holds statuses by reason, whose names need no quotes.
        return "{" + ", ".join(f"{key} = {_literal(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | SecretStr | FilePath):
        # TOML has all escapes of JSON, and wants one more.
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
