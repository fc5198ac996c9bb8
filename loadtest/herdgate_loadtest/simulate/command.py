"""`herdgate simulate`: play a scenario in virtual time.

Exit code: 0; 1 if a figure is beyond a bound that was given; 2 for a bad scenario or option; 130 for Ctrl-C.
"""

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from herdgate.core.errors import printable
from herdgate_loadtest.engine import parse_behaviour
from herdgate_loadtest.errors import ConfigurationError, UnreadableError
from herdgate_loadtest.output_file import check_output, write_output
from herdgate_loadtest.simulate.herd import simulate as play
from herdgate_loadtest.simulate.outcome import Outcome
from herdgate_loadtest.simulate.picture import as_html, as_svg
from herdgate_loadtest.simulate.reading import read_scenario
from herdgate_loadtest.simulate.report import as_json, as_text, beyond
from herdgate_loadtest.simulate.scenario import Scenario

__all__ = ["simulate"]

Draw = Callable[[Scenario, Sequence[Outcome]], str]

_PICTURES: dict[str, Draw] = {".svg": as_svg, ".html": as_html}


def simulate(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO.toml", help="Clients, fleet and failures.")],
    *,
    as_json_: Annotated[bool, typer.Option("--json", help="Print the result record, and nothing else.")] = False,
    compare: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Play it once for each of these behaviours, all clients of that kind."),
    ] = None,
    picture: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw arrivals, admissions and waiting: .svg or .html.")
    ] = None,
    max_ratio: Annotated[float | None, typer.Option(help="Exit with 1 if recovery_ratio is beyond.")] = None,
    max_tries: Annotated[float | None, typer.Option(help="Exit with 1 if attempts_per_client is beyond.")] = None,
) -> None:
    """Play a crowd that comes back, in virtual time: up to a million clients in seconds.

    Decides with the calendar of the gateway itself. The same scenario and seed give the same record.
    """
    strategies = _strategies(compare)
    draw = None if picture is None else _draw(picture)
    _check_bound("--max-ratio", max_ratio)
    _check_bound("--max-tries", max_tries)
    read = _read(scenario)
    try:
        outcomes = [play(read, strategy) for strategy in strategies]
    except KeyboardInterrupt:
        sys.exit(130)
    compared = compare is not None
    typer.echo(as_json(outcomes, compared=compared) if as_json_ else as_text(read, outcomes, compared=compared))
    if picture is not None and draw is not None:
        write_output("--picture", picture, draw(read, outcomes))
    missed = [(outcome, line) for outcome in outcomes for line in beyond(outcome.record, max_ratio, max_tries)]
    for outcome, line in missed:
        typer.echo(f"herdgate: {outcome.strategy and outcome.strategy + ': '}{line}", err=True)
    sys.exit(1 if missed else 0)


def _strategies(compare: str | None) -> list[str]:
    """Behaviours by name, each once; the empty one is the scenario as it stands."""
    if compare is None:
        return [""]
    try:
        return list(dict.fromkeys(parse_behaviour(name.strip()).name for name in compare.split(",")))
    except ConfigurationError as error:
        raise ConfigurationError("--compare", compare, error.way_out) from None


def _draw(file: str) -> Draw:
    path = Path(file)
    if path.suffix.lower() not in _PICTURES:
        raise ConfigurationError("--picture", file, f"write a name that ends in {' or '.join(_PICTURES)}")
    check_output("--picture", file)
    return _PICTURES[path.suffix.lower()]


def _check_bound(option: str, bound: float | None) -> None:
    if bound is not None and not (math.isfinite(bound) and bound > 0):
        raise ConfigurationError(option, bound, "write a number, more than 0")


def _read(file: str) -> Scenario:
    try:
        return read_scenario(file)
    except UnreadableError as error:
        for fault in error.faults:
            typer.echo(f"herdgate: {printable(file)}: {fault}", err=True)
        sys.exit(2)
