"""The parent: `herdgate serve` with several processes.

It opens the listeners and never accepts from them, keeps a child for each process, holds their calendar unless a fleet
has one, reads the settings again for all, and answers for all on one admin listener.

Stopping: the first sign goes to the children as SIGTERM, each further one as it is; who has not ended in time is
killed.
"""

import asyncio
import logging
import logging.config
import secrets
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from pydantic import SecretStr

from herdgate import ConfigurationError
from herdgate.core.limits import Limits
from herdgate.stores.parent.server import CalendarServer, check_shared_rate
from herdgate_gateway.admin import AdminServer
from herdgate_gateway.connections.opening import open_connections
from herdgate_gateway.data_server import BACKLOG
from herdgate_gateway.drain.plan import Trigger
from herdgate_gateway.drain.watching import watching
from herdgate_gateway.listeners import closing_listeners, open_listeners
from herdgate_gateway.log_lines import log_config, start_line
from herdgate_gateway.pid_one import warn_of_shell
from herdgate_gateway.processes.keeper import Keeper
from herdgate_gateway.processes.sums import Sums
from herdgate_gateway.processes.told import Job, pack_settings
from herdgate_gateway.processes.view import parent_view
from herdgate_gateway.reload import Reloader, hangups
from herdgate_gateway.settings import Settings
from herdgate_gateway.signs import STOP_SIGNS, hold, let_in
from herdgate_gateway.tasks import reap

__all__ = ["serve_processes"]

MORE_S = 5.0
"""Seconds that children have to end, once their sockets had their time."""

_logger = logging.getLogger("herdgate.gateway")


class Parent:
    """The children and their calendar.

    Args:
        settings: those in force.
        listeners: for the children to accept from; closed here at the first sign to stop.

    Attributes:
        keepers: one for each child.
        sums: of what the children count.
        calendar: theirs; None: they share that of a fleet.
        is_stopping: a sign to stop has come.
        group: what they call themselves together, in a fleet.
    """

    def __init__(self, settings: Settings, listeners: Sequence[socket.socket]) -> None:
        self.sums = Sums()
        self.calendar = None if settings.fleet.redis else CalendarServer(_shared_limits(settings))
        self.keepers = [Keeper(number, partial(self._job, number), self.sums.end) for number in _numbers(settings)]
        self.is_stopping = False
        self._drain: list[Any] | None = None
        self.group = secrets.token_hex(8)
        self._settings, self._listeners = settings, listeners
        self._own_secret = SecretStr(secrets.token_urlsafe(32))
        self._signed = asyncio.Event()

    async def run(self) -> None:
        """Keep the children until a sign to stop, and for as long as they take."""
        if self.calendar is not None:
            await self.calendar.start()
        keeping = [asyncio.create_task(keeper.keep()) for keeper in self.keepers]
        try:
            await self._signed.wait()
            stop_s = self._settings.drain.sigterm_s + MORE_S
            _, late = await asyncio.wait(keeping, timeout=stop_s)
            if late:
                _logger.error("%d children have not ended within %.0f s, killing them", len(late), stop_s)
        finally:
            for keeper in self.keepers:
                keeper.stop(signal.SIGKILL)
            await asyncio.wait(keeping, timeout=1)
            await reap(*keeping)
            if self.calendar is not None:
                await self.calendar.aclose()

    def stop(self, sign: signal.Signals) -> None:
        """A sign to stop has come."""
        for listener in self._listeners:
            listener.close()
        for keeper in self.keepers:
            keeper.stop(sign if self.is_stopping else signal.SIGTERM)
        self.is_stopping = True
        self._signed.set()

    def begin_drain(self, trigger: Trigger, within_s: float | None = None) -> None:
        """Drain all children together; see `Drain.begin`."""
        self._drain = self._drain or [trigger, within_s]
        for keeper in self.keepers:
            keeper.tell({"drain": [trigger, within_s]})

    @property
    def is_draining(self) -> bool:
        """The children were told to drain."""
        return self._drain is not None

    def drain(self, within_s: float | None) -> None:
        """The same, by a call."""
        self.begin_drain("call", within_s)

    def plan(self, settings: Settings) -> Callable[[], None]:
        """What makes these settings those of all children."""
        return partial(self._take, settings)

    def set_rate(self, rate: float | None) -> None:
        """Change the rate of all children, or of the whole fleet.

        Raises:
            ConfigurationError: None, negative, NaN, infinite or not a number; or there is nobody to tell a fleet.
        """
        if self.calendar is not None:
            self.calendar.set_rate(rate)
        else:
            self._tell_fleet("rate", check_shared_rate(rate))

    def set_fraction(self, fraction: float) -> None:
        """Change the admitted share, the same way."""
        if self.calendar is not None:
            self.calendar.set_fraction(fraction)
        else:
            self._tell_fleet("fraction", fraction)

    def _take(self, settings: Settings) -> None:
        was, self._settings = self._settings, settings
        if self.calendar is not None and settings.rate != was.rate:
            self.calendar.configure(settings.rate)
        if self.calendar is not None and settings.admit_fraction != was.admit_fraction:
            self.calendar.set_fraction(settings.admit_fraction)
        for keeper in self.keepers:
            keeper.tell({"settings": pack_settings(self._for_children())})

    def _tell_fleet(self, name: str, value: float) -> None:
        told = [keeper.tell({name: value}) for keeper in self.keepers]
        if not any(told):
            raise ConfigurationError(name, value, "try again in a moment: no child is there to tell the fleet")

    def _job(self, number: int) -> Job:
        calendar = None if self.calendar is None else self.calendar.url
        listeners = [listener.fileno() for listener in self._listeners]
        return Job(number, listeners, calendar, self._for_children(), self.group, self._drain)

    def _for_children(self) -> Settings:
        """A fleet agrees on a secret by itself, children of one parent have its."""
        if self._settings.secrets is not None or self.calendar is None:
            return self._settings
        return self._settings.model_copy(update={"secrets": (self._own_secret,)})


async def serve_processes(settings: Settings, read: Callable[[], Settings]) -> None:
    """Serve these settings with several processes until a sign to stop.

    Args:
        read: reads the settings again; see `Reloader`.

    Raises:
        ConfigurationError: a listener cannot be opened.
    """
    logging.config.dictConfig(log_config())
    with closing_listeners(open_listeners(settings.listen, BACKLOG)) as listeners:
        await _serve(settings, listeners, read)


async def _serve(settings: Settings, listeners: Sequence[socket.socket], read: Callable[[], Settings]) -> None:
    parent = Parent(settings, listeners)
    view = parent_view(parent, settings.admin.stale_after_s)
    admin = AdminServer(view, settings.admin.settings(), open_connections(settings))
    reloader = Reloader(read, parent.plan, settings)
    reloading = asyncio.create_task(reloader.run())
    try:
        admin.start()
        _logger.info("%s", start_line(settings, listeners, admin.url))
        warn_of_shell(_logger)
        with hangups(reloader.ask), _stop_signs(parent.stop):
            async with watching(settings, parent.begin_drain):
                await parent.run()
    finally:
        await reap(reloading)
        view.stop()
        admin.stop()


def _shared_limits(settings: Settings) -> Limits:
    """Those of the calendar, which are the same for every route."""
    return settings.route_limits(settings.routes[0])


def _numbers(settings: Settings) -> range:
    return range(1, settings.processes + 1)


@contextmanager
def _stop_signs(act: Callable[[signal.Signals], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for sign in STOP_SIGNS:
        loop.add_signal_handler(sign, act, sign)
    let_in()
    try:
        yield
    finally:
        hold()
        for sign in STOP_SIGNS:
            loop.remove_signal_handler(sign)
