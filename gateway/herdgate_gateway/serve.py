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
from herdgate import Gate
from herdgate.core.errors import ConfigurationError
from herdgate_gateway.admin import AdminServer, Status
from herdgate_gateway.app import Gateway
from herdgate_gateway.connections.opening import open_connections
from herdgate_gateway.data_server import BACKLOG, DataServer
from herdgate_gateway.descriptors import raise_limit
from herdgate_gateway.drain.coordinator import Drain
from herdgate_gateway.drain.watching import watching
from herdgate_gateway.errors import SettingsError
from herdgate_gateway.garbage import collect_in_small_lots
from herdgate_gateway.listeners import closing_listeners, open_listeners
from herdgate_gateway.log_lines import start_line
from herdgate_gateway.pid_one import warn_of_shell
from herdgate_gateway.processes import serve_processes
from herdgate_gateway.published import PublishedView
from herdgate_gateway.reload import Reloader, hangups, hold_hangups, together
from herdgate_gateway.settings import CONFIG_VARIABLE, Settings, load, missing_for_serving
from herdgate_gateway.signs import hold
from herdgate_gateway.tasks import reap
from herdgate_gateway.trace import Trace, TracedGate

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
    trace: Annotated[
        Path | None, typer.Option(help="Write what sockets do to this new file, for `herdgate replay`.")
    ] = None,
) -> None:
    """Serve: admit WebSockets at the set rate, in order, and relay them to workers.

    Settings come from the file, HERDGATE_* in the environment, and these options; the later ones win.
    `herdgate config show` prints them all. SIGHUP makes it read them again, without closing a socket.
    """
    hold_hangups()
    hold()
    flags = {"listen": listen, "workers": worker, "processes": processes, "rate": rate, "burst": burst}
    read = partial(_read, flags | {"admin.listen": admin}, config)
    settings = read()
    raise_limit()
    if settings.processes > 1 and trace is not None:
        raise ConfigurationError("--trace", trace, "leave it out, or serve with one process")
    if settings.processes > 1:
        asyncio.run(serve_processes(settings, read))
        return
    collect_in_small_lots()
    uvloop.run(_serve(settings, read, trace))


def _read(flags: Mapping[str, object], config: Path | None) -> Settings:
    settings = load(flags, config, os.environ)
    faults = missing_for_serving(settings)
    if faults:
        raise SettingsError(faults)
    return settings


class _Controls:
    def __init__(self, gateway: Gateway, drain: Drain) -> None:
        self.set_rate, self.set_fraction = gateway.set_rate, gateway.set_fraction
        self._drain = drain

    def drain(self, within_s: float | None) -> None:
        self._drain.begin("call", within_s)


def _take(gateway: Gateway, drain: Drain, started_at: float) -> Status:
    gates = {name: gate.snapshot() for name, gate in gateway.gates.items()}
    return Status(gates, gateway.pool.snapshot(), started_at, herdgate.__version__, drain=drain.status)


async def _serve(settings: Settings, read: Callable[[], Settings], trace: Path | None) -> None:
    with closing_listeners(open_listeners(settings.listen, BACKLOG)) as listeners:
        if trace is None:
            await _serve_on(listeners, settings, read)
            return
        with Trace(trace) as written:
            flushing = asyncio.create_task(written.go_on_flushing())
            await _serve_on(listeners, settings, read, partial(TracedGate, written))
            flushing.cancel()


async def _serve_on(
    listeners: list[socket.socket],
    settings: Settings,
    read: Callable[[], Settings],
    make_gate: Callable[..., Gate] = Gate,
) -> None:
    gateway = Gateway(settings, make_gate=make_gate)
    gateway.start()
    server = DataServer(gateway, settings)
    # Ready from the open listeners to the start of a drain.
    controls = _Controls(gateway, server.drain)
    view = PublishedView(controls, partial(_take, gateway, server.drain), lambda _: server.is_taking)
    admin = AdminServer(view, settings.admin.settings(), open_connections(settings))
    reloader = Reloader(read, together(gateway.plan, server.plan), settings)
    try:
        admin.start()
        _logger.info("%s", start_line(settings, listeners, admin.url))
        warn_of_shell(_logger)
        with hangups(reloader.ask):
            reloading = asyncio.create_task(reloader.run())
            async with watching(settings, server.drain.begin):
                await server.serve(sockets=listeners)
            await reap(reloading)
    finally:
        view.stop()
        await server.drain.aclose()
        await gateway.aclose()
        admin.stop()
