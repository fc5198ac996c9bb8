"""Values as they are written, and where: a TOML file, HERDGATE_* in the environment, flags. The later one holds.

`HERDGATE_RELAY__SETUP_S` is `setup_s` of `[relay]`. Lists are JSON or separated by commas, routes and other tables are
JSON. An empty variable counts as unset. Nothing is judged here but what cannot be read at all.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, NamedTuple, get_args, get_origin

from herdgate.core.errors import ConfigurationError
from herdgate_gateway.settings.suggestion import unknown_variable
from herdgate_gateway.settings.table import Path, Table, inner_table, parts, section

__all__ = ["CONFIG_VARIABLE", "PREFIX", "Written", "gather", "nested"]

PREFIX = "HERDGATE_"
CONFIG_VARIABLE = f"{PREFIX}CONFIG"
"""Names the file; no setting."""

# What Kubernetes puts into every pod when a Service is called herdgate, or herdgate-something.
_SERVICE_LINK = re.compile(rf"{PREFIX}(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)")
_SWITCH = {"true": True, "false": False, "on": True, "off": False, "yes": True, "no": False, "1": True, "0": False}


class Written(NamedTuple):
    """A value as it was written, and its source."""

    value: object
    source: str


_Entry = tuple[Path, Written | ConfigurationError]
"""What stands at a path, or why it could not be read."""


def gather(
    root: type[Table], flags: Mapping[str, object], file: FilePath | None, environ: Mapping[str, str]
) -> tuple[dict[Path, Written], list[ConfigurationError]]:
    """All that is written, by path, and what could not be read."""
    written: dict[Path, Written] = {}
    faults: list[ConfigurationError] = []
    for source in (_read_file(root, file), _read_environment(root, environ), _read_flags(root, flags)):
        try:
            for path, value in source:
                if isinstance(value, ConfigurationError):
                    faults.append(value)
                else:
                    written[path] = value
        except ConfigurationError as error:
            faults.append(error)
    return written, faults


def nested(written: Mapping[Path, Written]) -> dict[str, Any]:
    """The same as tables in tables. A value where a table should be stays, to be found wrong."""
    tree: dict[str, Any] = {}
    for path, (value, _) in written.items():
        table: Any = tree
        for key in path[:-1]:
            table = table.setdefault(key, {}) if isinstance(table, dict) else None
        if isinstance(table, dict):
            table[path[-1]] = value
    return tree


def _flat(table: type[Table], values: Mapping[str, object], source: str, at: Path = ()) -> Iterator[_Entry]:
    """Values one by one, so that sources add up inside a table. Lists are values, and replaced whole."""
    for key, value in values.items():
        inner = section(table, key)
        if inner and isinstance(value, Mapping):
            yield from _flat(inner, value, source, (*at, key))
        else:
            yield (*at, key), Written(value, source)


def _read_file(root: type[Table], file: FilePath | None) -> Iterator[_Entry]:
    if file is None:
        return
    try:
        values = tomllib.loads(file.read_bytes().decode())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError("config", file, f"give a TOML file that can be read ({reason})") from None
    yield from _flat(root, values, f"file {file}")


def _read_environment(root: type[Table], environ: Mapping[str, str]) -> Iterator[_Entry]:
    for name in sorted(environ):  # a table given as JSON comes before what replaces one of its values
        text = environ[name]
        if not name.startswith(PREFIX) or not text or name == CONFIG_VARIABLE or _SERVICE_LINK.fullmatch(name):
            continue
        path = tuple(name.removeprefix(PREFIX).lower().split("__"))
        annotation = _annotation(root, path)
        if annotation is None or not name.isupper():
            yield path, unknown_variable(root, name, PREFIX)
        else:
            yield from _read_text(root, path, annotation, text, f"env {name}")


def _read_flags(root: type[Table], flags: Mapping[str, object]) -> Iterator[_Entry]:
    for name, value in flags.items():
        path = tuple(name.split("."))
        annotation = _annotation(root, path)
        if isinstance(value, str) and annotation is not None:
            yield from _read_text(root, path, annotation, value, "flag")
        elif value is not None:
            yield from _flat(root, _wrapped(path, value), "flag")


def _read_text(root: type[Table], path: tuple[str, ...], annotation: Any, text: str, source: str) -> Iterator[_Entry]:
    try:
        text.encode()  # what is no UTF-8 in the environment has surrogates here
        value = _parse(annotation, text)
    except ValueError as error:
        yield path, ConfigurationError(".".join(path), "text that cannot be read", f"mend it: {error} ({source})")
    else:
        yield from _flat(root, _wrapped(path, value), source)


def _wrapped(path: tuple[str, ...], value: object) -> Mapping[str, object]:
    *outer, last = path
    table: dict[str, object] = {last: value}
    for key in reversed(outer):
        table = {key: table}
    return table


def _annotation(root: type[Table], path: tuple[str, ...]) -> Any:
    """What a field given on its own holds; None: there is no such field."""
    *outer, last = path
    table: type[Table] | None = root
    for key in outer:
        table = section(table, key) if table else None
    field = table.model_fields.get(last) if table else None
    return field.annotation if field else None


def _parse(annotation: Any, text: str) -> object:
    """A text as the kind of its field; left as it is where it is none of that kind, to be found wrong.

    Raises:
        ValueError: it should be JSON, and is not.
    """
    kinds = list(parts(annotation))
    if inner_table(annotation) or (text.startswith("[") and _holds_list(kinds)):
        return json.loads(text)
    if _holds_list(kinds) and text not in _words(kinds):
        return [entry.strip() for entry in text.split(",") if entry.strip()]
    if bool in kinds:
        return _SWITCH.get(text.lower(), text)
    for kind in (int, float):
        if float in kinds or kind in kinds:
            try:
                return kind(text)
            except ValueError:
                continue
    return text


def _holds_list(kinds: list[Any]) -> bool:
    return any(get_origin(kind) is tuple for kind in kinds)


def _words(kinds: list[Any]) -> set[str]:
    return {word for kind in kinds for word in get_args(kind) if isinstance(word, str)}
