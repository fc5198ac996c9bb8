"""An event loop whose time passes only when nobody has anything left to do, and then at once."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["VirtualLoop", "run_virtually"]

Result = TypeVar("Result")


class _NoSelector(selectors.SelectSelector):
    """Nothing comes from outside: to wait is to let time pass."""

    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everybody waits, and nothing will ever happen")
        self.loop.moment += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Attributes:
    moment: seconds since it was made.
    """

    def __init__(self) -> None:
        self.moment = 0.0
        selector = _NoSelector()
        super().__init__(selector)
        selector.loop = self

    def time(self) -> float:
        return self.moment


def run_virtually(main: Coroutine[Any, Any, Result]) -> Result:
    """As `asyncio.run`."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
