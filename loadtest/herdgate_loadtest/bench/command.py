"""`herdgate bench`: benchmarks that say what has to hold, and whether it does."""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer
import uvloop

from herdgate_loadtest.bench.figures import FIGURES
from herdgate_loadtest.bench.finding import Finding
from herdgate_loadtest.bench.sides.kinds import KINDS
from herdgate_loadtest.bench.sides.kinds import run as run_kind
from herdgate_loadtest.bench.sides.outcome import Outcome
from herdgate_loadtest.bench.sides.report import table
from herdgate_loadtest.bench.suite import MEMBERS, Load, Report, run
from herdgate_loadtest.errors import ConfigurationError, CrowdError

__all__ = ["bench"]

bench = typer.Typer(no_args_is_help=True, help="Measure whether what herdgate promises holds on this machine.")


@bench.command()
def fleet(
    only: Annotated[
        list[str] | None, typer.Option(help=f"Run this member; may be given again. One of {', '.join(MEMBERS)}.")
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Small numbers: to see that it works. The figures prove nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")] = False,
) -> None:
    """Measure a fleet: several gateways that share one calendar through a Redis.

    Starts a redis-server, gateways and workers of its own on loopback ports, and sends crowds to them. Takes six
    minutes.
    Exit code: 0 if every figure is within its bound and the run is valid, 1 if not, 2 if nothing was run.
    """
    members = _members(only)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # what gateways run on
            report = runner.run(run(members, fast=fast, tell=_say_nothing if as_json else _say))
    except CrowdError as error:
        typer.echo(f"herdgate: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    if as_json:
        typer.echo(json.dumps(report.as_dict(), allow_nan=False))
    _conclude(report)
    sys.exit(0 if report.holds else 1)


def _side_by_side(name: str) -> Callable[..., None]:
    """The command of one benchmark."""

    def command(
        fast: Annotated[
            bool, typer.Option("--fast", help="Short slots: to see that it works. The figures prove nothing.")
        ] = False,
        as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")] = False,
    ) -> None:
        try:
            outcome = run_kind(name, fast=fast)
        except CrowdError as error:
            typer.echo(f"herdgate: {error}", err=True)
            sys.exit(1)
        except KeyboardInterrupt:
            sys.exit(130)
        if as_json:
            typer.echo(json.dumps(outcome.as_dict(), allow_nan=False))
        else:
            for line in table(name, KINDS[name].unit, outcome):
                typer.echo(line)
        _conclude(outcome)
        sys.exit(0 if outcome.holds else 1)

    return command


for _name, _kind in KINDS.items():
    bench.command(_name, help=f"{_kind.about} Exit code: as for `fleet`.")(_side_by_side(_name))


def _members(only: Sequence[str] | None) -> list[str]:
    for name in only or ():
        if name not in MEMBERS:
            raise ConfigurationError("--only", name, f"write one of {', '.join(MEMBERS)}")
    return [name for name in MEMBERS if not only or name in only]


def _say(member: str, finding: Finding, load: Load) -> None:
    for name, value in finding.figures.items():
        bound = FIGURES[name]
        typer.echo(
            f"{member:9} {name:26} {value:9.4g}   has to be {bound}, aim {bound.aim}; load {load[0]:g}, {load[1]:g}"
        )


def _say_nothing(member: str, finding: Finding, load: Load) -> None:
    """For `--json`, which prints all at the end."""


def _conclude(report: Report | Outcome) -> None:
    """What does not hold, and what proves nothing."""
    for line in report.missed:
        typer.echo(f"herdgate: missed: {line}", err=True)
    for reason in report.reasons:
        typer.echo(f"herdgate: not valid: {reason}", err=True)
