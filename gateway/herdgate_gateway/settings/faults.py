"""Faults that pydantic found, as lines that people can act on: dotted field, value, way out, source."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from herdgate.core.errors import ConfigurationError
from herdgate_gateway.settings.fields import SECRETS
from herdgate_gateway.settings.sources import Written
from herdgate_gateway.settings.suggestion import unknown_setting
from herdgate_gateway.settings.table import Path, Table, dotted

__all__ = ["read_faults", "relocated", "source_of", "with_source"]

_WAYS = {
    "bool_type": "write true or false",
    "dict_type": "write a table",
    "float_type": "write a number",
    "int_type": "write a whole number",
    "missing": "write it, it has no default",
    "model_type": "write a table",
    "string_type": "write a text in quotes",
    "path_type": "write a path in quotes",
}


def read_faults(root: type[Table], error: ValidationError, written: Mapping[Path, Written]) -> list[ConfigurationError]:
    """One fault each."""
    return list(_read_faults(root, error, written))


def _read_faults(
    root: type[Table], error: ValidationError, written: Mapping[Path, Written]
) -> Iterator[ConfigurationError]:
    for found in error.errors(include_url=False):
        kind, path = found["type"], found["loc"]
        if kind == "default_factory_not_called":  # follows from another fault
            continue
        cause = found.get("ctx", {}).get("error")
        if isinstance(cause, ConfigurationError):
            fault = relocated(cause, path)
        elif kind == "extra_forbidden":
            fault = unknown_setting(root, path)
        elif kind == "literal_error":
            fault = ConfigurationError(dotted(path), _shown(path, found["input"]), f"write {found['ctx']['expected']}")
        else:
            given = "nothing" if kind == "missing" else _shown(path, found["input"])
            fault = ConfigurationError(dotted(path), given, _WAYS.get(kind, found["msg"]))
        yield with_source(fault, source_of(path, written))


def relocated(fault: ConfigurationError, path: Path) -> ConfigurationError:
    """The same fault under its dotted field: below the last key of `path`, where it does not name that one itself."""
    last = str(path[-1]) if path else ""
    inner = fault.field.removeprefix(last) if last and fault.field.startswith(last) else f".{fault.field}"
    field = (dotted(path) + inner.rstrip(".")).removeprefix(".")
    return ConfigurationError(field, _given(fault), fault.way_out.replace("or None for", 'or "none" for'))


def _given(fault: ConfigurationError) -> str:
    """What was given, as the fault shows it."""
    return str(fault)[len(f"{fault.field}: got ") : -len(f"; {fault.way_out}")]


def source_of(path: Path, written: Mapping[Path, Written]) -> str:
    """Where the value at a path was written, or the list or table that holds it."""
    for end in range(len(path), 0, -1):
        if path[:end] in written:
            return written[path[:end]].source
    return "default"


def with_source(fault: ConfigurationError, source: str) -> ConfigurationError:
    """The same fault, with where its value is from."""
    if source == "default":
        return fault
    return ConfigurationError(fault.field, _given(fault), f"{fault.way_out} ({source})")


def _shown(path: Path, value: Any) -> object:
    if any(key in SECRETS for key in path):
        return "a value not shown"
    if isinstance(value, str):
        return repr(value)
    return "a table" if isinstance(value, Mapping) else value
