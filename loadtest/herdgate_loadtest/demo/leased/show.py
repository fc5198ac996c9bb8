"""The demo of a fleet, from its start to its end."""

import asyncio
import json
import sys
from contextlib import ExitStack

import typer
from rich.console import Console

from herdgate_loadtest.demo.leased.news import keeping_ledger
from herdgate_loadtest.demo.leased.rounds import play_round
from herdgate_loadtest.demo.leased.stage import Stage
from herdgate_loadtest.demo.leased.view import LeasedView
from herdgate_loadtest.demo.rounds import Plan
from herdgate_loadtest.owned.fleet import OwnedFleet, owned_fleet

__all__ = ["show_fleet"]


def show_fleet(plan: Plan, *, once: bool, as_json: bool) -> None:
    """Play rounds; with `once` one, and then exit: 0 if all came back and the round is valid, else 1.

    Raises:
        ConfigurationError, PreflightError: redis-py, redis-server or ministack is missing.
        LoadtestError: the fleet does not start, or as `play_round`.
    """
    console = Console(quiet=as_json)
    view = LeasedView(plan, console)
    view.introduce(goes_on=not once)
    with ExitStack() as stack:
        with console.status("starting"):
            fleet = stack.enter_context(owned_fleet(rate=plan.rate, capacity=plan.herd))
        playing = _play(plan, fleet, view, once=once, as_json=as_json)
        all_is_well = stack.enter_context(asyncio.Runner()).run(playing)
    sys.exit(0 if all_is_well else 1)


async def _play(plan: Plan, fleet: OwnedFleet, view: LeasedView, *, once: bool, as_json: bool) -> bool:
    """Rounds until one is enough: whether it went well."""
    async with keeping_ledger(fleet.place) as ledger:
        stage = Stage(fleet, ledger, view)
        number = 0
        while True:
            played = await play_round(plan, stage, number)
            if as_json:
                typer.echo(json.dumps(played.as_dict(), allow_nan=False))
            else:
                view.conclude(played)
            if once:
                return played.is_good
            number += 1
