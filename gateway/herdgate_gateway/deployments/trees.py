"""Reading trees of YAML or JSON that others wrote: what is not there, or of another kind, is empty or unknown."""

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["MOST", "Tree", "at", "flag", "number", "table", "tables", "text", "texts"]

Tree = Mapping[str, Any]

MOST = 2.0**53
"""A number beyond this is none that a platform takes."""


def at(tree: Any, *path: str) -> Any:
    """The value at the end of a path; None where there is none."""
    for key in path:
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return tree


def table(tree: Any, *path: str) -> Tree:
    """The table there."""
    value = at(tree, *path)
    return value if isinstance(value, Mapping) else {}


def tables(tree: Any, *path: str) -> Iterator[Tree]:
    """The tables in the list there."""
    value = at(tree, *path)
    return (each for each in value if isinstance(each, Mapping)) if isinstance(value, list) else iter(())


def texts(tree: Any, *path: str) -> tuple[str, ...]:
    """The list there, each as text."""
    value = at(tree, *path)
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def text(tree: Any, *path: str) -> str:
    """The text there."""
    value = at(tree, *path)
    return value if isinstance(value, str) else ""


def number(tree: Any, *path: str) -> float | None:
    """The number there, `"30"` too; None: none, or one that only the platform knows, or takes nowhere (NaN)."""
    value = at(tree, *path)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if -MOST <= found <= MOST else None


def flag(tree: Any, *path: str) -> bool:
    """True where true stands."""
    return at(tree, *path) in (True, "true")
