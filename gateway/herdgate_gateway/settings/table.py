"""What every table of settings is: frozen, strict, with no keys but its own; and how to walk the tree of them."""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo

from herdgate_gateway.settings.fields import Absent

__all__ = [
    "Entry",
    "Path",
    "Table",
    "dotted",
    "entries",
    "holds_tables",
    "inner_table",
    "key_of",
    "leaves",
    "parts",
    "section",
    "table_at",
]

Path = tuple[str | int, ...]
"""Where a setting stands: keys, and positions in lists."""


class Table(BaseModel):
    """A table of settings."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, strict=True, extra="forbid")

    def unused(self) -> frozenset[str]:
        """Fields without a meaning beside what others are set to; they are not shown."""
        return frozenset()


def dotted(path: Path) -> str:
    """The path as people write it: `routes[0].client.rate`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def key_of(name: str, field: FieldInfo) -> str:
    """The name of a field in the file."""
    return field.alias or name


def parts(annotation: Any) -> Iterator[Any]:
    """An annotation and all it is made of."""
    yield annotation
    for part in get_args(annotation):
        yield from parts(part)


def inner_table(annotation: Any) -> type[Table] | None:
    """The table a field holds: itself, or none, or many of it."""
    return next((part for part in parts(annotation) if isinstance(part, type) and issubclass(part, Table)), None)


def section(table: type[Table], key: str) -> type[Table] | None:
    """The table that a key always holds, so that its keys can be given one by one."""
    field = table.model_fields.get(key)
    kind = field.annotation if field else None
    return kind if isinstance(kind, type) and issubclass(kind, Table) else None


def table_at(root: type[Table], path: Path) -> type[Table] | None:
    """The table at the end of a path, list positions passed over."""
    table: type[Table] | None = root
    for key in path:
        if table is not None and isinstance(key, str):
            fields = {key_of(name, field): field for name, field in table.model_fields.items()}
            table = inner_table(fields[key].annotation) if key in fields else None
    return table


class Entry(NamedTuple):
    """One field of a table.

    Attributes:
        word: what stands for None in the file; None where there is no such word.
        is_given: it was written, and is no default.
    """

    key: str
    value: Any
    word: str | None
    is_given: bool


def entries(table: Table) -> Iterator[Entry]:
    """All fields of a table that mean something."""
    unused = table.unused()
    for name, field in type(table).model_fields.items():
        if name in unused:
            continue
        word = next((mark.word for mark in field.metadata if isinstance(mark, Absent)), None)
        yield Entry(key_of(name, field), getattr(table, name), word, name in table.model_fields_set)


def leaves(table: Table, at: Path = ()) -> Iterator[tuple[Path, bool]]:
    """Where every setting stands that is no table, in this table and those in it; and whether it was written."""
    for key, value, _, is_given in entries(table):
        path = (*at, key)
        if isinstance(value, Table):
            yield from leaves(value, path)
        elif holds_tables(value):
            for position, entry in enumerate(value):
                yield from leaves(entry, (*path, position))
        else:
            yield path, is_given


def holds_tables(value: object) -> bool:
    """True for a list of tables."""
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], Table)
