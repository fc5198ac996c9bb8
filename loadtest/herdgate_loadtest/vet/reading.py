"""Tables out of files and standard input: JSON, TOML, YAML, or lines of KEY=VALUE.

Rules: whatever is in a file, the outcome is a table or an `UnreadableError`. A key that stands twice in one table is
a fault.
"""

import json
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from herdgate_loadtest.vet.environment import parse_lines
from herdgate_loadtest.vet.errors import UnreadableError

__all__ = ["FORMATS", "format_of", "parse_table", "read_bytes"]

_MOST_BYTES = 1 << 20
_ENDINGS = {".json": "json", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".env": "env"}


def read_bytes(file: str) -> bytes:
    """What is in a file; `-` is standard input.

    Raises:
        UnreadableError: it cannot be opened, or is larger than 1 MiB.
    """
    try:
        if file == "-":
            content = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UnreadableError([f"cannot be read: {getattr(error, 'strerror', None) or error}"]) from None
    if len(content) > _MOST_BYTES:
        raise UnreadableError(["is larger than 1 MiB, which no settings are; name the right file"])
    return content


def format_of(file: str, given: str | None) -> str:
    """The format of a file: the one that was given, or that of its name.

    Raises:
        UnreadableError: neither tells.
    """
    if given is not None:
        return given
    name = Path(file).name
    found = "env" if name.startswith(".env") else _ENDINGS.get(Path(file).suffix.lower())
    if found is None:
        raise UnreadableError([f"its name does not tell the format; add --format {'|'.join(FORMATS)}"])
    return found


def parse_table(content: bytes, form: str) -> Mapping[str, Any]:
    """The table in `content`, of the format `form`.

    Raises:
        UnreadableError: it is not of that format, or no table.
    """
    try:
        table = FORMATS[form](content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UnreadableError([f"is not UTF-8, from byte {error.start:,} on"]) from None
    except RecursionError:
        raise UnreadableError(["is nested too deeply"]) from None
    except (ValueError, yaml.YAMLError) as error:
        raise UnreadableError([f"is not {form.upper()}: {_one_line(error)}"]) from None
    if not isinstance(table, Mapping):
        raise UnreadableError(["holds no table of settings at its top"])
    return table


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON; write null for no limit")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _refuse_twice(key for key, _ in pairs)
    return dict(pairs)


def _refuse_twice(keys: Iterable[str]) -> None:
    for key, count in Counter(keys).items():
        if count > 1:
            raise ValueError(f"the key {key!r} stands there twice")


class _Loader(yaml.SafeLoader):
    """The safe loader, which takes the last of two equal keys, made to refuse them."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        _refuse_twice(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        return super().construct_mapping(node, deep)


def _yaml(text: str) -> Any:
    return yaml.load(text, _Loader)  # noqa: S506 - it is a safe loader


FORMATS: Mapping[str, Callable[[str], Any]] = {"json": _json, "toml": tomllib.loads, "yaml": _yaml, "env": parse_lines}
"""Readers by name of the format."""
