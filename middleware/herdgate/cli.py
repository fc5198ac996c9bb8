"""The command `herdgate`. Each package brings its own subcommands through the entry-point group `herdgate.commands`.

Rules: an entry point is a function, or a `typer.Typer` for a group of subcommands. One whose package needs what is not
installed stays in the list and says what to install. What people can mend is one line on standard error, exit code 2.
"""

import errno
import re
import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from herdgate import __version__
from herdgate.core.errors import HerdgateError, printable

__all__ = ["build", "main"]

COMMANDS = "herdgate.commands"
_OURS = "herdgate_"
_INTERRUPTED = 130
_match_negative = re.compile(r"-[0-9.]").match

_BadInput: type[Exception] = typer.BadParameter.__mro__[2]
"""ClickException, base of all that is wrong with a command line; typer itself names some of its subclasses only."""


def build() -> typer.Typer:
    """The command with every subcommand that is installed."""
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # it would read `herdgate[loadtest]` as markup
        help="Keep real-time services alive when every client reconnects at once.",
    )
    app.callback()(_callback)
    for entry in sorted(entry_points(group=COMMANDS), key=lambda entry: entry.name):
        _add(app, entry)
    return app


def _add(app: typer.Typer, entry: EntryPoint) -> None:
    try:
        command = entry.load()
    except ModuleNotFoundError as error:
        package = entry.module.partition(".")[0]
        if (error.name or "").partition(".")[0] == package:  # not a dependency: the entry point is wrong
            raise
        _add_unable(app, entry.name, f"needs more packages: pip install 'herdgate[{package.removeprefix(_OURS)}]'")
        return
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=entry.name)
    else:
        app.command(entry.name, cls=_Command)(command)


class _Command(TyperCommand):
    """A negative number is a value, to be judged as such, and no option that nobody knows."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, list(args))
        except _BadInput as error:
            if not _match_negative(getattr(error, "option_name", "")):
                raise
        ctx.ignore_unknown_options = True
        return super().parse_args(ctx, args)


def _add_unable(app: typer.Typer, name: str, hint: str) -> None:
    """A subcommand that only tells, whatever its arguments, why it cannot run."""

    def tell() -> None:
        raise HerdgateError(f"{name} {hint}")

    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    app.command(name, help=hint, context_settings=anything, add_help_option=False)(tell)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"herdgate {__version__}")
        raise typer.Exit


def _callback(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Also keeps a single subcommand from running without its name."""


def main() -> None:
    """Run the command; an error people can mend is one line and exit code 2."""
    try:
        code = build()(prog_name="herdgate", standalone_mode=False)
    except HerdgateError as error:
        _end(str(error), 2)
    except _BadInput as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            _end(str(error), 2, prefix="")
        _end(_explain(error), 2)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _end(f"{error.strerror}: write to where there is room", 2)
    except (typer.Abort, KeyboardInterrupt):  # the latter while subcommands are loaded
        sys.exit(_INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _end(message: str, code: int, *, prefix: str = "herdgate: ") -> NoReturn:
    typer.echo("\n".join(map(printable, f"{prefix}{message}".split("\n"))), err=True)
    sys.exit(code)


def _explain(error: Any) -> str:
    """One line of an error of typer's: the option, what was given, the way out."""
    parameter, context = getattr(error, "param", None), getattr(error, "ctx", None)
    text = error.format_message()
    if error.message and parameter is not None:
        text = f"{parameter.opts[0]}: {_given(error)}{_lower(error.message.removeprefix('Value error, '))}"
    text = " ".join(text.split()).partition(", unable to parse")[0].rstrip(".")
    path = context.command_path if context is not None else "herdgate"
    return f"{_lower(text)}; see {path} --help"


def _given(error: Exception) -> str:
    """What was given, where the error does not tell by itself: typer leaves it to the validation error behind it."""
    details = getattr(error.__cause__, "errors", None)
    given = str(details()[0]["input"]) if details is not None else ""
    return f"got {given}; " if given else ""


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
