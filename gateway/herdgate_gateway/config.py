"""`herdgate config`: the settings in force and where each is from, and whether a gateway could serve them.

`check` takes deployments too, and says whether they let gateways and workers end well; see `deployments`.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from herdgate_gateway.deployments.names import is_deployment
from herdgate_gateway.errors import ConfigurationError, SettingsError
from herdgate_gateway.settings import CONFIG_VARIABLE, Settings, as_json, as_toml, load, missing_for_serving

__all__ = ["check", "config", "show"]

config = typer.Typer(no_args_is_help=True, help="Show and check the settings of a gateway.")

FileArgument = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="TOML file; HERDGATE_* variables hold over it.")
]
FilesArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[FILE]...",
        help="TOML file; and what deploys it: kustomization folders, manifests, ECS task definitions, "
        "CloudFormation templates, attributes of target groups and balancers.",
    ),
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
def check(files: FilesArgument = None, option: FileOption = None) -> None:
    """Check that a gateway could serve these settings, and that what deploys it lets it end well.

    Exit code: 0; 2 and one line per fault in what was given; 1 where timers or copies do not go together.
    """
    deployments = [file for file in files or () if is_deployment(file)]
    settings = [file for file in files or () if file not in deployments]
    if len(settings) > 1:
        raise ConfigurationError("config check", settings[1], f"name one file of settings, as {settings[0]}")
    own = settings[0] if settings else option
    if own is not None or not deployments:
        _check_settings(own)
    if deployments:
        _check_deployments(deployments, own)


def _check_settings(file: Path | None) -> None:
    settings = _load(file)
    if faults := missing_for_serving(settings):
        _fail(faults)
    typer.echo(f"ok: {_summary(settings)}")


def _check_deployments(paths: Sequence[Path], own: Path | None) -> None:
    from herdgate_gateway.deployments.checking import check_deployments
    from herdgate_gateway.deployments.report import lines

    checked = check_deployments(paths, own)
    if checked.faults:
        _fail(checked.faults)
    for line in lines(checked):
        typer.echo(line)
    if checked.has_errors:
        raise typer.Exit(1)


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


def _fail(faults: Sequence[ConfigurationError | str]) -> NoReturn:
    for fault in faults:
        typer.echo(fault, err=True)
    raise typer.Exit(2)
