"""`herdgate serve`: the gateway as a process.

Everything is opened before anything is served: settings, listeners, admin listener; whatever is wrong is one line each.
The main loop publishes its counts for the admin thread four times a second.
"""

import asyncio
import os
import signal
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

import herdgate
from herdgate_gateway.admin import AdminServer, Status, hand_over
from herdgate_gateway.app import Gateway
from herdgate_gateway.client_leg import client_leg_class
from herdgate_gateway.errors import SettingsError
from herdgate_gateway.listeners import open_listeners
from herdgate_gateway.proxy_protocol import proxy_protocol_class
from herdgate_gateway.settings import CONFIG_VARIABLE, Settings, load, missing_for_serving

__all__ = ["serve"]

BACKLOG = 4096
PUBLISH_S = 0.25
STOP_SIGNS = (signal.SIGINT, signal.SIGTERM)


def serve(
    *,
    config: Annotated[Path | None, typer.Option(envvar=CONFIG_VARIABLE, help="Settings, TOML.")] = None,
    listen: Annotated[
        list[str] | None, typer.Option(help="Where clients connect: host:port, [v6]:port, unix:/path, fd:N.")
    ] = None,
    worker: Annotated[list[str] | None, typer.Option(help="A worker: ws://host:port. Repeat it for more.")] = None,
    rate: Annotated[float | None, typer.Option(help="Admissions per second.")] = None,
    burst: Annotated[float | None, typer.Option(help="Admissions at once. Default: one second of the rate.")] = None,
    admin: Annotated[str | None, typer.Option(help="Where health, metrics and status are: host:port, or off.")] = None,
) -> None:
    """Serve: admit WebSockets at the set rate, in order, and relay them to workers.

    Settings come from the file, HERDGATE_* in the environment, and these options; the later ones win.
    `herdgate config show` prints them all.
    """
    flags = {"listen": listen, "workers": worker, "rate": rate, "burst": burst, "admin.listen": admin}
    settings = load(flags, config, os.environ)
    faults = missing_for_serving(settings)
    if faults:
        raise SettingsError(faults)
    uvloop.run(_serve(settings))


class _Server(uvicorn.Server):
    """uvicorn's server, but a sign to stop ends it and not the process: there is more to close than it knows of."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for sign in STOP_SIGNS:
            loop.add_signal_handler(sign, self.handle_exit, sign, None)
        try:
            yield
        finally:
            for sign in STOP_SIGNS:
                loop.remove_signal_handler(sign)


class _View:
    """The running gateway, for the admin thread."""

    def __init__(self, gateway: Gateway, server: uvicorn.Server) -> None:
        self._gateway = gateway
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._started_at = time.time()
        self._publish()

    def status(self) -> Status:
        """The latest counts."""
        return self._status

    def is_ready(self) -> bool:
        """True from the open listeners to the sign to stop."""
        return self._server.started and not self._server.should_exit

    async def set_rate(self, rate: float | None) -> None:
        """Change the rate in the main loop."""
        await hand_over(self._loop, partial(self._gateway.set_rate, rate))

    async def set_fraction(self, fraction: float) -> None:
        """Change the admitted share in the main loop."""
        await hand_over(self._loop, partial(self._gateway.set_fraction, fraction))

    def stop(self) -> None:
        """Publish no more."""
        self._timer.cancel()

    def _publish(self) -> None:
        gates = {name: gate.snapshot() for name, gate in self._gateway.gates.items()}
        self._status = Status(gates, self._gateway.pool.snapshot(), self._started_at, herdgate.__version__)
        self._timer = self._loop.call_later(PUBLISH_S, self._publish)


async def _serve(settings: Settings) -> None:
    listeners = open_listeners(settings.listen, BACKLOG)
    gateway = Gateway(settings)
    server = _Server(_server_config(gateway, settings))
    view = _View(gateway, server)
    admin = AdminServer(view, settings.admin.settings())
    try:
        admin.start()
        await server.serve(sockets=listeners)
    finally:
        view.stop()
        await gateway.aclose()
        admin.stop()
        for listener in listeners:
            listener.close()


def _server_config(gateway: Gateway, settings: Settings) -> uvicorn.Config:
    relay = settings.relay.settings()
    http: type[HttpToolsProtocol] = HttpToolsProtocol
    if settings.proxy_protocol:
        http = proxy_protocol_class(http, settings.trusted_proxies)
    return uvicorn.Config(
        gateway,
        http=http,
        ws=client_leg_class(
            max_message_bytes=relay.max_message_bytes,
            max_fragment_bytes=relay.max_fragment_bytes or relay.max_message_bytes,
            close_s=relay.close_s,
        ),
        ws_max_size=relay.max_message_bytes,
        ws_ping_interval=None,
        ws_per_message_deflate=False,
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        backlog=BACKLOG,
        ssl_certfile=settings.tls.certificate,
        ssl_keyfile=None if settings.tls.key is None else str(settings.tls.key),
        ssl_version=ssl.PROTOCOL_TLS_SERVER,
        timeout_graceful_shutdown=10,
    )
