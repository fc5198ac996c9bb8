"""One child, in its parent: started, listened to, and started again whenever it ends.

Starting again waits 0.1 s, and twice as long each time, up to 5 s, until a child has lived for 10 s.
"""

import asyncio
import contextlib
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from herdgate_gateway.admin import ChildStatus
from herdgate_gateway.processes.lifeline import Lifeline
from herdgate_gateway.processes.reports import Report, read_report
from herdgate_gateway.processes.told import Job

__all__ = ["Keeper"]

FIRST_PAUSE_S, LONGEST_PAUSE_S, LONG_LIFE_S = 0.1, 5.0, 10.0

_CHILD = (sys.executable, "-P", "-m", "herdgate_gateway.processes.child")
_logger = logging.getLogger("herdgate.gateway")


class Keeper:
    """Keeps one child alive.

    Args:
        job: makes what to tell a child that is started now.
        ended: gets its last report when it has ended.

    Attributes:
        number: of the child, from 1.
        report: the latest one of the child that lives; None before its first.
        reported_at: when it came, seconds of `time.monotonic`.
    """

    def __init__(self, number: int, job: Callable[[], Job], ended: Callable[[Report], None]) -> None:
        self.number = number
        self.report: Report | None = None
        self.reported_at = 0.0
        self._job, self._on_end = job, ended
        self._process: asyncio.subprocess.Process | None = None
        self._lifeline: Lifeline | None = None
        self._stopping = asyncio.Event()
        self._restarts = 0

    async def keep(self) -> None:
        """Start it, and again, until it is told to stop and has ended."""
        pause_s = FIRST_PAUSE_S
        while not self._stopping.is_set():
            began = time.monotonic()
            how = await self._live()
            if self._stopping.is_set():
                return
            if time.monotonic() - began > LONG_LIFE_S:
                pause_s = FIRST_PAUSE_S
            _logger.error("child %d %s, starting it again in %.1f s", self.number, how, pause_s)
            await self._pause(pause_s)
            pause_s = min(LONGEST_PAUSE_S, pause_s * 2)
            self._restarts += 1

    def tell(self, message: dict[str, Any]) -> bool:
        """Tell the child that lives; False: none does."""
        if self._lifeline is None:
            return False
        self._lifeline.tell(message)
        return True

    def stop(self, sign: signal.Signals) -> None:
        """Send it a sign to stop, and start no other."""
        self._stopping.set()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(sign)

    def status(self, stale_after_s: float) -> ChildStatus:
        """How it is now."""
        if self._process is None:
            return ChildStatus(self.number, None, "down", self._restarts)
        status = ChildStatus(self.number, self._process.pid, "starting", self._restarts)
        if self.report is None:
            return status
        if time.monotonic() - self.reported_at > stale_after_s:
            return replace(status, state="blocked")
        return replace(status, state="ready" if self.report.is_ready else "stopping")

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _live(self) -> str:
        """One life of the child; how it ended."""
        job = self._job()
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = self._process = await _started(theirs, job.listeners)
            except OSError as error:
                ours.close()
                return f"could not be started ({error.strerror})"
        if self._stopping.is_set():
            process.terminate()
        _logger.info("child %d started, pid %d", self.number, process.pid)
        self._lifeline = await Lifeline.over(ours)
        self._lifeline.tell(job.pack())
        try:
            await self._listen(self._lifeline)
        finally:
            await self._lifeline.aclose()
            self._lifeline = None
        code = await process.wait()
        self._process = None
        return f"(pid {process.pid}) {_how(code)}"

    async def _listen(self, lifeline: Lifeline) -> None:
        try:
            while (told := await lifeline.hear()) is not None:
                self.report, self.reported_at = read_report(told), time.monotonic()
        except (ValueError, LookupError, TypeError) as error:
            _logger.error("child %d reports what makes no sense, hanging up on it: %s", self.number, error)
        finally:
            if self.report is not None:
                self._on_end(self.report)
            self.report = None


async def _started(lifeline: socket.socket, listeners: Sequence[int]) -> asyncio.subprocess.Process:
    """A process group of its own: Ctrl-C at a terminal is for the parent to pass on."""
    return await asyncio.create_subprocess_exec(
        *_CHILD,
        str(lifeline.fileno()),
        stdin=asyncio.subprocess.DEVNULL,
        pass_fds=[lifeline.fileno(), *listeners],
        process_group=0,
    )


def _how(code: int) -> str:
    if code >= 0:
        return f"has ended with code {code}"
    return f"was ended by {signal.Signals(-code).name}"
