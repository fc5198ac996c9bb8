"""Beats on a thread of their own, with a loop and a client of their own: a busy loop does not lose its lease.

Nor does a blocked one keep it: while the loop that would act gives no sign for half a lease, no beat is sent.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

from herdgate_gateway.leases.beat import Beats
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.table import LeaseTable

__all__ = ["ThreadedBeats"]

_SIGN_S = 0.1
_STILL = 0.5
"""Of the lease."""


class ThreadedBeats:
    """As `beat.Beats`; `run` is called in the loop that acts.

    Args:
        table: makes the client of the thread, in its loop.
        beat_s: seconds between two beats.
        load: sockets there are now; called in the thread.
    """

    def __init__(self, life: Life, table: Callable[[], LeaseTable], *, beat_s: float, load: Callable[[], int]) -> None:
        self._life, self._table = life, table
        self._beats: Beats | None = None
        self._beat_s, self._load = beat_s, load
        self._still_s = _STILL * life.row.lease_ms / 1_000
        self._sign_at = life.clock.now()

    @property
    def trouble_at(self) -> float | None:
        """When a beat failed or was late last, by the clock; None: never."""
        return None if self._beats is None else self._beats.trouble_at

    async def run(self, renewed: Callable[[], None], lost: Callable[[], None]) -> None:
        """Beat until this life is over, or cancelled."""
        acting = asyncio.get_running_loop()
        thread = _LoopThread(self._beat(lambda: _call(acting, renewed), lambda: _call(acting, lost)))
        thread.start()
        try:
            while thread.is_alive():
                self._sign_at = self._life.clock.now()
                await asyncio.sleep(_SIGN_S)
        finally:
            thread.cancel()
        if thread.failure is not None:
            raise thread.failure

    async def _beat(self, renewed: Callable[[], None], lost: Callable[[], None]) -> None:
        table = self._table()
        life = replace(self._life, table=table)
        self._beats = beats = Beats(life, beat_s=self._beat_s, load=self._load, is_awake=self._is_awake)
        try:
            await beats.run(renewed, lost)
        finally:
            await table.aclose()

    def _is_awake(self) -> bool:
        return self._life.clock.now() - self._sign_at < self._still_s


class _LoopThread(threading.Thread):
    """A thread for one coroutine, which may be cancelled from another one."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        super().__init__(name="herdgate-beats", daemon=True)
        self._work = work
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._is_cancelled = False
        self.failure: Exception | None = None

    def run(self) -> None:
        """In the thread."""
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner, suppress(asyncio.CancelledError):
                runner.run(self._cancellable())
        except Exception as error:  # noqa: BLE001 - whoever waits for the thread raises it
            self.failure = error

    def cancel(self) -> None:
        """From another thread; harmless once it has ended."""
        self._is_cancelled = True
        _call(self._loop, self._cancel)

    async def _cancellable(self) -> None:
        self._task = asyncio.current_task()
        if self._is_cancelled:
            self._work.close()
            return
        await self._work

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


def _call(loop: asyncio.AbstractEventLoop, act: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # it is closed
        loop.call_soon_threadsafe(act)
