"""A verdict that is waited for without a task: a server with thousands of sockets in a batch has none to spare."""

import asyncio
from collections.abc import Callable
from typing import Any

from herdgate.core.answers import Admitted, Denied

__all__ = ["Question"]


class Question:
    """Passes one verdict on, unless it is taken back before.

    Args:
        pending: what the verdict is made of. It does not fail.
        settle: makes it.
        undo: takes an admission that nobody wants any more.
        answer: gets the verdict.
    """

    __slots__ = ("_answer", "_is_wanted", "_pending", "_settle", "_undo")

    def __init__(
        self,
        pending: asyncio.Future[Any],
        settle: Callable[[Any], Admitted | Denied],
        undo: Callable[[Admitted], None],
        answer: Callable[[Admitted | Denied], None],
    ) -> None:
        self._pending, self._settle, self._undo, self._answer = pending, settle, undo, answer
        self._is_wanted = True
        pending.add_done_callback(self._answered)

    def take_back(self) -> None:
        """Ask no more: `answer` is not called after this."""
        self._is_wanted = False
        self._pending.cancel()

    def _answered(self, pending: asyncio.Future[Any]) -> None:
        if pending.cancelled():
            return
        verdict = self._settle(pending.result())
        if self._is_wanted:
            self._answer(verdict)
        elif isinstance(verdict, Admitted):
            self._undo(verdict)
