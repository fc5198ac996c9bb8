"""A coroutine that is stepped only while it may be: asked before each of its steps. Pure.

A step is what runs from one await that waits to the next. A process that was stopped, or a loop that was blocked, comes
back in the middle of nothing: what goes on then asks first. A step that is under way cannot be asked, nor can tasks and
threads that the coroutine has started.
"""

from asyncio import CancelledError
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any

__all__ = ["Guarded"]


class Guarded:
    """To be awaited once.

    Args:
        work: the coroutine.
        may_step: asked before each step, those of a clean-up too, in the loop. If not, it is cancelled there,
            whatever it waited for, and the step in which it hears of it is its last: it is closed where it would wait.
    """

    def __init__(self, work: Coroutine[Any, Any, Any], may_step: Callable[[], bool]) -> None:
        self._work, self._may_step = work, may_step
        self._is_abandoned = False

    def abandon(self) -> None:
        """Whatever it waits for or shields itself from: the next step is its last, and it cannot wait in it.

        The task that awaits it has to be cancelled, so that there is a next step.
        """
        self._is_abandoned = True

    def __await__(self) -> Generator[Any, Any, Any]:
        """Run it to its end."""
        step: Callable[[], Any] = partial(self._work.send, None)
        while True:
            try:
                waits_for = self._checked(step)()
            except StopIteration as end:
                return end.value
            try:
                step = partial(self._work.send, (yield waits_for))
            except GeneratorExit:
                self._work.close()
                raise
            except BaseException as error:  # noqa: BLE001 - what it waited for has failed, or its task is cancelled
                step = partial(self._work.throw, error)

    def _checked(self, step: Callable[[], Any]) -> Callable[[], Any]:
        if self._is_abandoned:
            return self._close
        return step if self._may_step() else self._last

    def _last(self) -> Any:
        """Raises always, as what it waits for is not waited for."""
        self._work.throw(CancelledError())
        self._close()

    def _close(self) -> Any:
        """Raises always; RuntimeError: it wanted to wait even then."""
        self._work.close()
        raise CancelledError
