"""`herdgate vet`: reads the reconnect settings of clients and says whether a fleet of them is safe.

Rules: what is printed goes to standard output as bytes, UTF-8 in any locale. Exit code: 0 safe, 1 unsafe, 2
unreadable; of several sources the worst.
"""

import sys
from typing import Annotated

import typer

from herdgate_loadtest.errors import ConfigurationError, HerdgateError

__all__ = ["vet"]

_MOST_ATTEMPTS = 100_000
_FORMATS = ("json", "toml", "yaml", "env")


def vet(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="JSON, TOML, YAML or .env; - is standard input.")
    ] = None,
    *,
    form: Annotated[
        str | None, typer.Option("--format", help="Format of all files: json, toml, yaml or env; by default by name.")
    ] = None,
    key: Annotated[str, typer.Option(help="Section with the settings, path.to.section; of .env files a prefix.")] = "",
    env: Annotated[
        str | None, typer.Option("--env", metavar="PREFIX", help="Vet the variables of this process with this prefix.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="Defaults of a library, below the settings; alone: vet the library itself.")
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Language of the client, for its numbers: go, java, js or python.")
    ] = None,
    attempts: Annotated[int, typer.Option(help="Print so many delays of one client.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_junit: Annotated[bool, typer.Option("--junit", help="Print JUnit XML.")] = False,
) -> None:
    """Say whether clients with these reconnect settings would be a herd.

    Judges each by rules and by a simulated fleet. Exit code: 0 safe, 1 unsafe, 2 unreadable.
    """
    _check(files, form=form, env=env, preset=preset, attempts=attempts, both=as_json and as_junit)
    try:
        from herdgate_loadtest.vet import junit, report
        from herdgate_loadtest.vet.sources import Wanted, vet_all
        from herdgate_loadtest.vet.verdict import EXIT_CODES, worst
    except ModuleNotFoundError as error:
        if error.name not in {"pydantic", "yaml"}:
            raise
        raise HerdgateError("vet needs more packages: pip install 'herdgate[vet]'") from None
    results = list(
        vet_all(Wanted(files or (), env=env, preset=preset, language=language, form=form, key=key, seed=seed))
    )
    if as_junit:
        _write(junit.as_junit(results))
    else:
        _write((report.as_json if as_json else report.as_text)(results, seed, attempts))
    sys.exit(EXIT_CODES[worst(results)])


def _check(
    files: list[str] | None, *, form: str | None, env: str | None, preset: str | None, attempts: int, both: bool
) -> None:
    if not files and env is None and preset is None:
        raise HerdgateError("vet: nothing to vet; name a file, --env PREFIX or --preset NAME; see herdgate vet --help")
    if form is not None and form not in _FORMATS:
        raise ConfigurationError("--format", form, f"write one of {', '.join(_FORMATS)}")
    if not 0 <= attempts <= _MOST_ATTEMPTS:
        raise ConfigurationError("--attempts", attempts, f"write a number from 0 to {_MOST_ATTEMPTS:,}")
    if both:
        raise HerdgateError("--json and --junit: only one goes to standard output; leave one of them out")


def _write(report: bytes) -> None:
    """Past the buffer of `sys.stdout`, which would try once more, and fail, when the process ends."""
    if sys.stdout is None:
        raise HerdgateError("vet: standard output is closed")
    try:
        with open(sys.stdout.fileno(), "wb", closefd=False) as out:
            out.write(report)
    except BrokenPipeError:  # whoever reads it has enough
        raise
    except OSError as error:
        raise HerdgateError(f"vet: standard output cannot be written: {error.strerror}") from None
