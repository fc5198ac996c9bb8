"""JSON patches (RFC 6902), their operations add, remove, replace and test."""

import copy
from collections.abc import Mapping
from typing import Any

from herdgate_gateway.errors import HerdgateError

__all__ = ["patched"]


def patched(tree: dict[str, Any], operations: list[Any], where: str) -> dict[str, Any]:
    """The tree after the operations.

    Raises:
        HerdgateError: an operation is another one, or its place is not there.
    """
    result = copy.deepcopy(tree)
    for operation in operations:
        try:
            _apply(result, operation)
        except (AttributeError, KeyError, IndexError, TypeError, ValueError):
            told = operation.get("path") if isinstance(operation, Mapping) else operation
            raise HerdgateError(
                f"{where}: cannot patch {told}; write add, remove, replace or test, with a path that is there"
            ) from None
    return result


def _apply(tree: Any, operation: Any) -> None:
    first, *keys = (part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/"))
    if first or not keys:
        raise ValueError
    *outer, last = keys
    for key in outer:
        tree = tree[int(key)] if isinstance(tree, list) else tree[key]
    act = operation["op"]
    place: Any = (len(tree) if last == "-" else int(last)) if isinstance(tree, list) else last
    if act == "add" and isinstance(tree, list):
        if not 0 <= place <= len(tree):
            raise IndexError
        tree.insert(place, operation["value"])
    elif act == "add":
        tree[place] = operation["value"]
    elif act == "replace":
        tree[place]  # it has to be there
        tree[place] = operation["value"]
    elif act == "remove":
        del tree[place]
    elif act != "test" or tree[place] != operation["value"]:
        raise ValueError
