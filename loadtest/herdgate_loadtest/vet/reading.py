"""Tables out of files and standard input: JSON, TOML, YAML, or lines of KEY=VALUE.

Rules: whatever is in a text, the outcome is a table or an `UnreadableError`. A key that stands twice in one table is
a fault.
"""

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from herdgate_loadtest.errors import UnreadableError
from herdgate_loadtest.input_file import decoded
from herdgate_loadtest.vet.environment import parse_lines

__all__ = ["FORMATS", "format_of", "parse_table"]

_ENDINGS = {".json": "json", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".env": "env"}


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
        table = FORMATS[form](decoded(content))
    except RecursionError:
        raise UnreadableError(["is nested too deeply"]) from None
    except (ValueError, yaml.YAMLError) as error:
        raise UnreadableError([f"is not {form.upper()}: {_one_line(error)}"]) from None
    if not isinstance(table, Mapping):
        raise UnreadableError(["holds no table of settings at its top"])
    return table


def _one_line(error: Exception) -> str:
    text = str(error)
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        what = ", ".join(filter(None, (error.context, error.problem)))
        text = f"{what} (at line {mark.line + 1}, column {mark.column + 1})"
    return " ".join(text.split())[:200]


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
    """The safe loader, made to refuse two equal keys, of which it takes the last, and a value that is not of its tag.

    `!!int ''` and the like would raise whatever int() and its kin raise inside.
    """

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            why = f", {error}" if isinstance(error, ValueError) else ""  # the others speak of PyYAML's own code
            problem = f"found no {node.tag.rpartition(':')[2]}{why}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        _refuse_twice(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        return super().construct_mapping(node, deep)


def _yaml(text: str) -> Any:
    return yaml.load(text, _Loader)  # noqa: S506 - it is a safe loader


FORMATS: Mapping[str, Callable[[str], Any]] = {"json": _json, "toml": tomllib.loads, "yaml": _yaml, "env": parse_lines}
"""Readers by name of the format."""
