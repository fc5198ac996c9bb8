"""What somebody may have meant who wrote a name that is no setting. The value is never shown: it may be a secret."""

from collections.abc import Iterator
from difflib import get_close_matches

from herdgate.core.errors import ConfigurationError
from herdgate_gateway.settings.table import Path, Table, dotted, key_of, section, table_at

__all__ = ["unknown_setting", "unknown_variable"]

_GIVEN = "a name that is no setting"


def unknown_setting(root: type[Table], path: Path) -> ConfigurationError:
    """The fault of a key in a file or a flag."""
    *outer, last = path
    table = table_at(root, tuple(outer)) or root
    keys = [key_of(name, field) for name, field in table.model_fields.items()]
    known = list(_names(root))
    near = (
        get_close_matches(str(last), keys, n=1)
        or [name for name in known if name.rpartition(".")[2] == last]  # the right name in the wrong table
        or get_close_matches(dotted(path), known, n=1)
    )
    way_out = f"did you mean {near[0]}?" if near else f"known here: {', '.join(keys)}"
    return ConfigurationError(dotted(path), _GIVEN, way_out)


def unknown_variable(root: type[Table], name: str, prefix: str) -> ConfigurationError:
    """The fault of a variable in the environment."""
    if name.upper().startswith(f"{prefix}ROUTES__"):
        return ConfigurationError(name, _GIVEN, f"write all routes as JSON in {prefix}ROUTES")
    known = [known.replace(".", "__").upper() for known in _names(root)]
    near = get_close_matches(name.upper().removeprefix(prefix), known, n=1)
    way_out = f"did you mean {prefix}{near[0]}?" if near else f"unset it; {prefix}RELAY__SETUP_S is setup_s of [relay]"
    return ConfigurationError(name, _GIVEN, way_out)


def _names(table: type[Table], at: str = "") -> Iterator[str]:
    """Dotted names of all that can be given on its own."""
    for name, field in table.model_fields.items():
        inner = section(table, name)
        key = at + key_of(name, field)
        if inner:
            yield from _names(inner, f"{key}.")
        else:
            yield key
