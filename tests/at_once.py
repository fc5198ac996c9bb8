"""Coroutines that never wait, run without a loop: the decisions of a gate that shares its calendar with nobody."""

from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["at_once"]

Result = TypeVar("Result")


def at_once(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """What it returns; fails if it would wait."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    coroutine.close()
    raise AssertionError("it waits")
