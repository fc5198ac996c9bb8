"""The command `herdgate`. Each package brings its own subcommands through the entry-point group `herdgate.commands`."""

import sys
from importlib.metadata import entry_points

import typer

from herdgate.core.errors import HerdgateError

__all__ = ["build", "main"]

COMMANDS = "herdgate.commands"


def build() -> typer.Typer:
    """The command with every subcommand that is installed."""
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        help="Keep real-time services alive when every client reconnects at once.",
    )
    app.callback()(_callback)
    for entry in sorted(entry_points(group=COMMANDS), key=lambda entry: entry.name):
        app.command(entry.name)(entry.load())
    return app


def _callback() -> None:
    """Subcommands only: without a callback, typer would run a single one without its name."""


def main() -> None:
    """Run the command; an error people can mend is one line and exit code 2."""
    try:
        build()()
    except HerdgateError as error:
        typer.echo(f"herdgate: {error}", err=True)
        sys.exit(2)
