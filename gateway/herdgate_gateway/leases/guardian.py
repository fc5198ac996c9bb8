"""The parent of a worker: it sees its end at once, and tells the table, so that nobody has to wait for its silence.

    guardian -> worker            signals are passed on; its exit code becomes the guardian's
             <- its lives, by name, on a pipe, each before it begins
             -> the table: each of them is dead

A guardian that is killed with its worker, as when a host dies, leaves it to the others to notice. One that is killed
alone leaves its worker as it is. How a worker has ended is a line, unless it ended well, or said by itself why it did
not begin.
"""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress

__all__ = ["LIVES_FD", "guard", "heed_no_more", "tell_guardian"]

LIVES_FD = "HERDGATE_LIVES_FD"
"""Environment variable: the descriptor that a worker tells its lives on."""

_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_logger = logging.getLogger("herdgate.leases")


def tell_guardian(inc: str, environ: Mapping[str, str] = os.environ) -> None:
    """Say that this life is about to begin; nothing where there is no guardian."""
    told = environ.get(LIVES_FD)
    if told is not None:
        with suppress(OSError):  # it is gone
            os.write(int(told), f"{inc}\n".encode())


def heed_no_more() -> None:
    """Ignore all signs to stop from now on, in a process that is about to end.

    Its loop takes its handlers away before the process ends: a second sign that comes then would kill it, and nobody
    could tell from its exit code that all was well.
    """
    loop = asyncio.get_running_loop()
    for number in _PASSED_ON:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_IGN)


async def guard(
    name: str,
    command: Sequence[str],
    declare_dead: Callable[[str], Awaitable[None]],
    hand_on: Sequence[socket.socket] = (),
) -> int:
    """Run a worker to its end.

    Args:
        name: of the worker.
        command: of the worker.
        declare_dead: called for each of its lives.
        hand_on: sockets that the worker inherits; they are closed here, as nobody would answer on them.

    Returns:
        Its exit code; 128 and the number of the signal that ended it.
    """
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    signals = _Signals(asyncio.get_running_loop())
    with os.fdopen(reading, "rb", buffering=0) as lives:
        environ = {**os.environ, LIVES_FD: str(writing)}
        # A group of its own: Ctrl-C reaches it through its guardian, and once.
        inherited = [writing, *(each.fileno() for each in hand_on)]
        worker = await asyncio.create_subprocess_exec(*command, pass_fds=inherited, env=environ, process_group=0)
        os.close(writing)
        for each in hand_on:
            each.close()
        signals.pass_on(worker)
        code = await worker.wait()
        incs = (lives.read() or b"").decode().split()
        is_told = await _declare(reversed(incs), declare_dead)  # the last one is the one that lived
        if code < 0 or (code > 0 and incs):
            end = f"was killed by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
            _logger.warning("worker %s %s%s", name, end, "; declared dead" if incs and is_told else "")
        return code if code >= 0 else 128 - code


async def _declare(incs: Iterable[str], declare_dead: Callable[[str], Awaitable[None]]) -> bool:
    """Tell the table of all; False if it has not taken each."""
    is_told = True
    for inc in incs:
        try:
            await declare_dead(inc)
        except TimeoutError:
            is_told = False
            _logger.warning("the table does not answer: others will notice the end of %s by its silence", inc)
    return is_told


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time one has none
        return f"signal {number}"


class _Signals:
    """Passes them on, also those that come before there is anybody to pass them to."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._worker: asyncio.subprocess.Process | None = None
        self._early: list[int] = []
        for number in _PASSED_ON:
            loop.add_signal_handler(number, self._came, number)

    def pass_on(self, worker: asyncio.subprocess.Process) -> None:
        """From now on, to this one."""
        self._worker = worker
        for number in self._early:
            self._came(number)

    def _came(self, number: int) -> None:
        if self._worker is None:
            self._early.append(number)
            return
        with suppress(ProcessLookupError):
            self._worker.send_signal(number)
