"""`herdgate serve`: the gateway as a process.

Everything is opened before anything is served: settings, listeners, admin listener; whatever is wrong is one line each.
The main loop publishes its counts for the admin thread four times a second.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
import uvloop

import herdgate
from herdgate_gateway.admin import AdminServer, Status
from herdgate_gateway.app import Gateway
from herdgate_gateway.connections.opening import open_connections
from herdgate_gateway.data_server import BACKLOG, DataServer
from herdgate_gateway.descriptors import raise_limit
from herdgate_gateway.errors import SettingsError
from herdgate_gateway.garbage import collect_in_small_lots
from herdgate_gateway.listeners import closing_listeners, open_listeners
from herdgate_gateway.log_lines import start_line
from herdgate_gateway.processes import serve_processes
from herdgate_gateway.published import PublishedView
from herdgate_gateway.reload import Reloader, hangups, hold_hangups, together
from herdgate_gateway.settings import CONFIG_VARIABLE, Settings, load, missing_for_serving

__all__ = ["serve"]

_logger = logging.getLogger("herdgate.gateway")


def serve(
    *,
    config: Annotated[Path | None, typer.Option(envvar=CONFIG_VARIABLE, help="Settings, TOML.")] = None,
    listen: Annotated[
        list[str] | None, typer.Option(help="Where clients connect: host:port, [v6]:port, unix:/path, fd:N.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="Processes that serve together, at one common rate. Default: 1.")
    ] = None,
    worker: Annotated[list[str] | None, typer.Option(help="A worker: ws://host:port. Repeat it for more.")] = None,
    rate: Annotated[float | None, typer.Option(help="Admissions per second.")] = None,
    burst: Annotated[float | None, typer.Option(help="Admissions at once. Default: one second of the rate.")] = None,
    admin: Annotated[str | None, typer.Option(help="Where health, metrics and status are: host:port, or off.")] = None,
) -> None:
    """Serve: admit WebSockets at the set rate, in order, and relay them to workers.

    Settings come from the file, HERDGATE_* in the environment, and these options; the later ones win.
    `herdgate config show` prints them all. SIGHUP makes it read them again, without closing a socket.
    """
    hold_hangups()
    flags = {"listen": listen, "workers": worker, "processes": processes, "rate": rate, "burst": burst}
    read = partial(_read, flags | {"admin.listen": admin}, config)
    settings = read()
    raise_limit()
    if settings.processes > 1:
        asyncio.run(serve_processes(settings, read))
        return
    collect_in_small_lots()
    uvloop.run(_serve(settings, read))


def _read(flags: Mapping[str, object], config: Path | None) -> Settings:
    settings = load(flags, config, os.environ)
    faults = missing_for_serving(settings)
    if faults:
        raise SettingsError(faults)
    return settings


def _take(gateway: Gateway, started_at: float) -> Status:
    gates = {name: gate.snapshot() for name, gate in gateway.gates.items()}
    return Status(gates, gateway.pool.snapshot(), started_at, herdgate.__version__)


async def _serve(settings: Settings, read: Callable[[], Settings]) -> None:
    with closing_listeners(open_listeners(settings.listen, BACKLOG)) as listeners:
        await _serve_on(listeners, settings, read)


async def _serve_on(listeners: list[socket.socket], settings: Settings, read: Callable[[], Settings]) -> None:
    gateway = Gateway(settings)
    gateway.start()
    server = DataServer(gateway, settings)
    # Ready from the open listeners to the sign to stop.
    view = PublishedView(
        gateway, partial(_take, gateway), lambda _: server.started and gateway.is_ready and not server.should_exit
    )
    admin = AdminServer(view, settings.admin.settings(), open_connections(settings))
    reloader = Reloader(read, together(gateway.plan, server.plan), settings)
    try:
        admin.start()
        _logger.info("%s", start_line(settings, listeners, admin.url))
        with hangups(reloader.ask):
            reloading = asyncio.create_task(reloader.run())
            await server.serve(sockets=listeners)
            reloading.cancel()
    finally:
        view.stop()
        await gateway.aclose()
        admin.stop()
