"""The admin server: a thread with a loop of its own, so that health never waits behind the crowd.

Sockets are bound by `start()`, in the thread of the caller, so that what is wrong with an address is told there and at
once. The thread is a daemon: it keeps no process alive that has lost its main thread.
"""

import asyncio
import contextlib
import errno
import logging
import socket
import sys
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from herdgate import ConfigurationError
from herdgate.core.numbers import check_number
from herdgate_gateway.admin.access import check_token, everyone, nobody, token_holders
from herdgate_gateway.admin.listener import Listener
from herdgate_gateway.admin.routes import routes
from herdgate_gateway.admin.view import View
from herdgate_gateway.connections.store import Connections
from herdgate_gateway.listeners import open_listeners

__all__ = ["AdminServer", "AdminSettings"]

_logger = logging.getLogger("herdgate.gateway")

BACKLOG = 128
SAY_EVERY_S = 10.0
SWITCH_S = 0.0001
START_S = STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class AdminSettings:
    """Where the admin server listens.

    Attributes:
        listen: `host:port` (port 0: a free one), as everywhere in the settings; None: not over HTTP.
        token: lets control over HTTP; None: there is none.
        socket: path of the control socket; None: there is none.
        stale_after_s: age of the status from which the main loop counts as blocked, seconds.

    Raises:
        ConfigurationError: a token that no header can carry, or an age that is none.
    """

    listen: str | None = "127.0.0.1:9901"
    token: str | None = field(default=None, repr=False)
    socket: Path | None = None
    stale_after_s: float = 3.0

    def __post_init__(self) -> None:
        if self.token is not None:
            check_token("admin.token", self.token)
        check_number("admin.stale_after_s", self.stale_after_s, least=0.1, unit="seconds")


class AdminServer:
    """Health, readiness, metrics, status and control of one gateway.

    Args:
        view: the gateway.
        settings: where it listens.
        connections: used in its loop only, and closed there; None: it says that there are none.
    """

    def __init__(self, view: View, settings: AdminSettings, connections: Connections | None = None) -> None:
        self._view = view
        self._settings = settings
        self._connections = connections
        self._http: list[socket.socket] = []
        self._control: list[socket.socket] = []
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self.url: str | None = None
        """`http://host:port` with the port that was bound; None while it does not listen over TCP."""

    def start(self) -> None:
        """Listen and answer; returns once it does.

        Raises:
            ConfigurationError: an address or path cannot be had; nothing is left open.
        """
        try:
            self._bind()
            # Health has a thread of its own, which waits that long for the interpreter while the main one is busy.
            sys.setswitchinterval(SWITCH_S)
            # Not the loop of the data port: it may be uvloop, and nothing here is worth its start.
            runner = asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)
            self._loop = runner.get_loop()
            started: Future[None] = Future()
            self._thread = threading.Thread(
                target=self._run, args=[runner, started], name="herdgate-admin", daemon=True
            )
            self._thread.start()
            started.result(START_S)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Finish the requests under way and stop listening. Without a start, or twice, it does nothing."""
        if self._control and self._settings.socket is not None:
            # While it is still answered: a moment later the path may be that of the next process.
            self._settings.socket.unlink(missing_ok=True)
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed already
                self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join(STOP_S)
        for bound in self._http + self._control:
            bound.close()
        self._http, self._control, self._thread, self._loop, self.url = [], [], None, None, None

    def _bind(self) -> None:
        if self._settings.listen is not None:
            self._http = open_listeners([self._settings.listen], BACKLOG, field="admin.listen")
            self.url = _url(self._http[0])
        if self._settings.socket is not None:
            self._control = _open_control(self._settings.socket)

    def _run(self, runner: asyncio.Runner, started: "Future[None]") -> None:
        with runner:
            runner.run(self._serve(started))

    async def _serve(self, started: "Future[None]") -> None:
        self._stop = asyncio.Event()
        asyncio.get_running_loop().set_exception_handler(_Failures())
        listeners = self._listeners()
        try:
            for listener in listeners:
                await listener.open()
        except OSError as error:  # listen(2) finds what bind(2) did not
            started.set_exception(error)
        else:
            started.set_result(None)
            await self._stop.wait()
        for listener in listeners:
            await listener.close()
        if self._connections is not None:
            await self._connections.aclose()

    def _listeners(self) -> list[Listener]:
        view, settings = self._view, self._settings
        access = nobody if settings.token is None else token_holders(settings.token)
        apps = [routes(view, who, settings.stale_after_s, self._connections) for who in (access, everyone)]
        return [Listener(app, sockets) for app, sockets in zip(apps, (self._http, self._control), strict=True)]


class _Failures:
    """Logs what fails in the loop; out of descriptors it is one line now and then, not a traceback for each try."""

    def __init__(self) -> None:
        self._said_at = float("-inf")

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
            loop.default_exception_handler(context)
        elif loop.time() >= self._said_at + SAY_EVERY_S:
            self._said_at = loop.time()
            _logger.error("no descriptor is left to answer health and metrics with; raise the limit (ulimit -n)")


def _open_control(path: Path) -> list[socket.socket]:
    try:
        return open_listeners([f"unix:{path}?mode=600"], BACKLOG, field="admin.socket")
    except ConfigurationError as error:
        raise ConfigurationError(error.field, str(path), error.way_out) from None


def _url(bound: socket.socket) -> str | None:
    if bound.family not in {socket.AF_INET, socket.AF_INET6}:
        return None
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
