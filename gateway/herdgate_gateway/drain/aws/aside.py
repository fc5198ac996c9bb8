"""A question that blocks, beside the loop: one at a time, however long it takes.

Reading from a socket has a time limit for each piece only, and looking up a name has none. Whoever asked again
meanwhile would have one more thread each time.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from herdgate_gateway.tasks import in_thread

__all__ = ["Aside"]

Result = TypeVar("Result")


class Aside(Generic[Result]):
    """Of one kind of question.

    Args:
        within_s: seconds after which there is no answer.
    """

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self._asked: asyncio.Future[Result] | None = None

    @property
    def is_free(self) -> bool:
        """False while a question of before has not come back."""
        return self._asked is None or self._asked.done()

    async def ask(self, work: Callable[[], Result]) -> Result:
        """What this question comes to.

        Raises:
            TimeoutError: it takes too long, or an earlier one still does.
            RuntimeError: there is no thread to be had.
        """
        if not self.is_free:
            raise TimeoutError
        asked = self._asked = asyncio.ensure_future(in_thread(work))
        try:
            done, _ = await asyncio.wait((asked,), timeout=self._within_s)
        except asyncio.CancelledError:
            asked.cancel()
            raise
        if not done:
            asked.add_done_callback(_forget)
            raise TimeoutError
        return asked.result()


def _forget(asked: asyncio.Future[Result]) -> None:
    """Nobody waits for it any more."""
    if not asked.cancelled():
        asked.exception()
