"""`herdgate worker`: an ASGI app, or handlers that dial out, as a worker that owns shards."""

import os
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from herdgate.fleet import fleet_of
from herdgate_gateway.drain.aws.identity import METADATA
from herdgate_gateway.errors import ConfigurationError, HerdgateError
from herdgate_gateway.leases.options import (
    EndpointOption,
    FleetOption,
    GenerationOption,
    LeaseOption,
    RedisOption,
    RegionOption,
    TableOption,
    check_fleet,
    check_name,
    place_of,
)
from herdgate_gateway.listeners import Tcp, closing_listeners, open_listeners, read_listen
from herdgate_gateway.workers import WorkerPool

__all__ = ["worker"]

_LISTEN = "127.0.0.1:9000"
_WILDCARDS = ("0.0.0.0", "::", "*", "")  # noqa: S104
_NO_NAME = re.compile("[^A-Za-z0-9_.-]")


def worker(
    app: Annotated[str | None, typer.Argument(help="ASGI app to serve: module:attribute.", show_default=False)] = None,
    *,
    table: TableOption,
    dial: Annotated[
        str | None,
        typer.Option("--dial", envvar="HERDGATE_WORKER__DIAL", help="Handler that dials out; beside APP, or alone."),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option("--listen", envvar="HERDGATE_WORKER__LISTEN", help=f"Where gateways connect. Default: {_LISTEN}."),
    ] = None,
    addr: Annotated[
        str | None,
        typer.Option(
            "--addr", envvar="HERDGATE_WORKER__ADDR", help="What gateways dial: ws://host:port. Default: as --listen."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            envvar="HERDGATE_WORKER__NAME",
            help="The same after a restart; no other process may have it. Default: host name, and port with APP.",
        ),
    ] = None,
    capacity: Annotated[
        int,
        typer.Option("--capacity", envvar="HERDGATE_WORKER__CAPACITY", min=0, help="Sockets at once; 0: none."),
    ] = 4_000,
    region: RegionOption = None,
    endpoint_url: EndpointOption = None,
    fleet: FleetOption = "default",
    redis: RedisOption = None,
    lease_s: LeaseOption = 3.0,
    generation: GenerationOption = 0,
    stop_s: Annotated[
        float,
        typer.Option(
            "--stop-s", envvar="HERDGATE_WORKER__STOP_S", min=1, max=86_400, help="Longest time of a good end, seconds."
        ),
    ] = 30.0,
    drain_file: Annotated[
        Path | None,
        typer.Option(
            "--drain-file",
            envvar="HERDGATE_WORKER__DRAIN_FILE",
            help="Drain as soon as there is such a file, and stay.",
        ),
    ] = None,
    drain_ecs: Annotated[
        bool,
        typer.Option(
            "--drain-ecs",
            envvar="HERDGATE_WORKER__DRAIN_ECS",
            help="The same as soon as ECS takes this task out of service.",
        ),
    ] = False,
    drain_s: Annotated[
        float,
        typer.Option(
            "--drain-s",
            envvar="HERDGATE_WORKER__DRAIN_S",
            min=1,
            max=86_400,
            help="Longest time of such a drain, seconds.",
        ),
    ] = 120.0,
) -> None:
    """Own shards of connections, and serve them with an ASGI app, with a handler that dials out, or with both.

    SIGTERM and Ctrl-C hand everything to other workers, sockets at a pace; once more, at once. A file, or ECS,
    makes it do the same, and stay as a process that has nothing.
    """
    if app is None and dial is None:
        raise HerdgateError("give an APP to serve, or --dial module:handler, or both")
    if app is None:
        _check_unserved({"--listen": listen, "--addr": addr})
    if drain_ecs and METADATA not in os.environ:
        raise ConfigurationError("--drain-ecs", "outside ECS", f"leave it out there: {METADATA} is not set")
    check_fleet(fleet)
    place_of(table, region, endpoint_url)  # what is wrong is told by the name of its option
    from herdgate_gateway.leases.worker_process import Joining
    from herdgate_gateway.worker_kit.process import Job, run_worker
    from herdgate_gateway.worker_kit.triggers import Triggers

    if redis is not None:
        _check_redis(redis)
    listen = _LISTEN if listen is None else listen
    with closing_listeners(_listeners(listen, addr) if app is not None else []) as listeners:
        joining = Joining(
            table,
            region,
            endpoint_url,
            fleet,
            _name(name, listeners),
            (addr or _addr(listen, listeners)) if listeners else "",
            capacity,
            redis,
            lease_s,
            generation,
        )
        triggers = Triggers(None if drain_file is None else str(drain_file), drain_ecs, drain_s)
        job = Job(joining, app, dial, [each.fileno() for each in listeners], stop_s, triggers)
        raise typer.Exit(run_worker(job, listeners))


def _check_unserved(given: Mapping[str, str | None]) -> None:
    """Options that nothing comes of without an app."""
    for option, value in given.items():
        if value is not None:
            raise ConfigurationError(option, value, "give an APP to serve there as well, or leave it out")


def _read_tcp(listen: str) -> Tcp:
    with suppress(ConfigurationError):  # the ways out of a gateway are not those of a worker
        if isinstance(asked := read_listen(listen), Tcp):
            return asked
    raise ConfigurationError("--listen", listen, "write host:port, as in 127.0.0.1:9001")


def _listeners(listen: str, addr: str | None) -> list[socket.socket]:
    """Open, to be handed on."""
    asked = _read_tcp(listen)
    if addr is not None:
        _check_addr(addr)
    elif asked.host in _WILDCARDS:
        raise ConfigurationError("--listen", listen, "say with --addr ws://host:port what gateways dial")
    return open_listeners([listen], field="--listen")


def _check_addr(addr: str) -> None:
    try:
        WorkerPool([addr])
    except ConfigurationError as error:
        raise ConfigurationError("--addr", addr, error.way_out) from None


def _addr(listen: str, listeners: list[socket.socket]) -> str:
    """Of the host that was given, with the port that was bound."""
    return f"ws://{listen.rpartition(':')[0]}:{_port(listeners)}"


def _name(name: str | None, listeners: list[socket.socket]) -> str:
    if name is None:
        host = _NO_NAME.sub("-", socket.gethostname())[:58] or "worker"
        return f"{host}-{_port(listeners)}" if listeners else host
    check_name("--name", name)
    return name


def _port(listeners: list[socket.socket]) -> int:
    port: int = listeners[0].getsockname()[1]
    return port


def _check_redis(url: str) -> None:
    from herdgate_gateway.leases.channel import open_redis

    fleet_of("--redis", url)
    open_redis(url, "--redis")
