"""`herdgate demo`: cut a crowd off and watch it come back, in order."""

import asyncio
import math
import sys
from typing import Annotated

import typer
from rich.console import Console

from herdgate import Limits
from herdgate.core.numbers import LEAST_RATE, MOST_RATE
from herdgate_loadtest.demo.capacity import make_room
from herdgate_loadtest.demo.fleet import run_fleet
from herdgate_loadtest.demo.leased.show import show_fleet
from herdgate_loadtest.demo.rounds import Plan, play_round
from herdgate_loadtest.demo.view import View
from herdgate_loadtest.errors import ConfigurationError, CrowdError

__all__ = ["demo"]


def demo(
    herd: Annotated[int, typer.Option(help="Clients.")] = 3_000,
    rate: Annotated[float, typer.Option(help="Admissions per second; the burst is 1/20 s of it.")] = 200.0,
    fleet: Annotated[
        bool,
        typer.Option(
            "--fleet", help="Two gateways, and three workers that own shards: one of each is killed, in turn."
        ),
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="One round, then exit: 0 if all came back and the run is valid, else 1.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each round's result record, and nothing else.")
    ] = False,
) -> None:
    """Cut a crowd of WebSocket clients off in one instant and watch it come back, in order.

    Starts a gateway in front of two workers (a chat app) on loopback ports, each a process. Ctrl-C ends it.
    """
    plan = _plan(herd, rate)
    try:
        if fleet:
            make_room(herd, most_processes=1)
            show_fleet(plan, once=once, as_json=as_json)
        else:
            _show(plan, make_room(herd), once=once, as_json=as_json)
    except CrowdError as error:
        typer.echo(f"herdgate: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _show(plan: Plan, processes: int, *, once: bool, as_json: bool) -> None:
    view = View(plan, Console(quiet=as_json))
    view.introduce(goes_on=not once)
    with run_fleet(plan.rate, processes) as fleet, asyncio.Runner() as runner:
        while True:
            played = runner.run(play_round(plan, fleet, view.watch))
            if as_json:
                typer.echo(played.record.to_json())
            else:
                view.conclude(played)
            if once:
                sys.exit(0 if played.record.valid and math.isfinite(played.record.t100_s) else 1)


def _plan(herd: int, rate: float) -> Plan:
    if herd < 1:
        raise ConfigurationError("--herd", herd, "write a number of clients, 1 or more")
    try:
        limits = Limits(rate=rate)
    except ConfigurationError:
        limits = None
    if limits is None or not limits.rate:
        way_out = f"write admissions per second, from {LEAST_RATE:g} to {MOST_RATE:,}"
        raise ConfigurationError("--rate", rate, way_out)
    return Plan(herd, rate)
