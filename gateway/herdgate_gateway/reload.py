"""Settings read again while the gateway serves.

    asked -> read and plan, in a thread -> take, in the loop -> one line: what has changed

Rules: a fault anywhere before the taking leaves everything as it was, and is one line; one reload at a time, and who
asks meanwhile gets another one after it, so that the last state is the one in force; values are never logged.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from herdgate_gateway.errors import ConfigurationError, SettingsError
from herdgate_gateway.settings import Settings, changes, files, takeable
from herdgate_gateway.tasks import in_thread

__all__ = ["Reloader", "hangups", "hold_hangups", "together"]

Take = Callable[[], None]

_logger = logging.getLogger("herdgate.gateway")


class Reloader:
    """Brings a running gateway to the settings as they are now.

    Args:
        read: reads them, and checks that they can be served; raises ConfigurationError. Called in a thread.
        plan: makes ready what they say, and returns what makes it so; raises ConfigurationError. Called in a thread;
            its result in the loop.
        running: the settings in force.
    """

    def __init__(self, read: Callable[[], Settings], plan: Callable[[Settings], Take], running: Settings) -> None:
        self._read = read
        self._plan = plan
        self._running = running
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Reload soon; returns at once."""
        self._asked.set()

    async def run(self) -> None:
        """Reload whenever asked, until cancelled."""
        while await self._asked.wait():
            self._asked.clear()
            try:
                await self._reload()
            except ConfigurationError as error:
                _tell_faults(error)
            except Exception:
                _logger.exception("settings not reloaded, all stays as it was")

    async def _reload(self) -> None:
        written, settings, take = await in_thread(self._prepare)
        take()
        _tell_success(self._running, settings, written)
        self._running = settings

    def _prepare(self) -> tuple[Settings, Settings, Take]:
        written = self._read()
        settings = takeable(self._running, written)
        return written, settings, self._plan(settings)


def together(*plans: Callable[[Settings], Take]) -> Callable[[Settings], Take]:
    """One plan of several parts: all of them are made ready before the first is taken."""

    def plan(settings: Settings) -> Take:
        takes = [each(settings) for each in plans]

        def take() -> None:
            for each in takes:
                each()

        return take

    return plan


def hold_hangups() -> None:
    """Let SIGHUP wait from now on, in this thread and those it starts, until `hangups`: it would end the process."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])


@contextmanager
def hangups(act: Callable[[], None]) -> Iterator[None]:
    """Call `act` in the running loop at each SIGHUP, one that was held before included; after the block, none matters.

    For the main thread.
    """
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, act)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])
    try:
        yield
    finally:
        hold_hangups()
        loop.remove_signal_handler(signal.SIGHUP)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _tell_faults(error: ConfigurationError) -> None:
    for fault in error.faults if isinstance(error, SettingsError) else (error,):
        _logger.error("settings not reloaded, all stays as it was: %s", fault)


def _tell_success(old: Settings, new: Settings, written: Settings) -> None:
    if until_restart := changes(new, written):
        _logger.warning("these settings take a restart, and stay as they were: %s", ", ".join(until_restart))
    again = [name for name in files(new) if name in files(written)]
    read = f"; files read again: {', '.join(again)}" if again else ""
    _logger.info("settings reloaded, changed: %s%s", ", ".join(changes(old, new)) or "nothing", read)
