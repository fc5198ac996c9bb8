"""`herdgate config`: the settings in force and where each is from, and whether a gateway could serve them."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from herdgate_gateway.errors import ConfigurationError, SettingsError
from herdgate_gateway.settings import CONFIG_VARIABLE, Settings, as_json, as_toml, load, missing_for_serving

__all__ = ["check", "config", "show"]

config = typer.Typer(no_args_is_help=True, help="Show and check the settings of a gateway.")

FileArgument = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="TOML file; HERDGATE_* variables hold over it.")
]
FileOption = Annotated[
    Path | None,
    typer.Option("--config", envvar=CONFIG_VARIABLE, help="The same, as other commands take it; FILE holds over it."),
]


@config.command()
def show(
    file: FileArgument = None,
    option: FileOption = None,
    as_json_text: Annotated[bool, typer.Option("--json", help="Print JSON: settings and sources.")] = False,
) -> None:
    """Print the settings in force as TOML, each with its source; secrets are masked."""
    settings = _load(file or option)
    typer.echo(as_json(settings) if as_json_text else as_toml(settings), nl=as_json_text)


@config.command()
def check(file: FileArgument = None, option: FileOption = None) -> None:
    """Check that a gateway could serve these settings: exit code 0, or 2 and one line per fault."""
    settings = _load(file or option)
    if faults := missing_for_serving(settings):
        _fail(faults)
    typer.echo(f"ok: {_summary(settings)}")


def _load(file: Path | None) -> Settings:
    try:
        return load({}, file, os.environ)
    except SettingsError as error:
        _fail(error.faults)


def _summary(settings: Settings) -> str:
    workers = [] if settings.leases.table else [(len(settings.workers), "worker")]
    counted = [*workers, (len(settings.routes), "route"), (len(settings.listen), "listener")]
    parts = [f"{count} {what}{'' if count == 1 else 's'}" for count, what in counted]
    parts += [settings.fleet.shown()] if settings.fleet.redis else []
    parts += [f"owners in {place}"] if (place := settings.leases.place()) else []
    return f"{settings.rate:g} admissions per second, {', '.join(parts)}"


def _fail(faults: Sequence[ConfigurationError]) -> NoReturn:
    for fault in faults:
        typer.echo(fault, err=True)
    raise typer.Exit(2)
