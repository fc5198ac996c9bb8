"""Locust in processes of its own, as it patches the interpreter: started, watched, and stopped in good order.

Rules: they are a group of their own, so that Ctrl-C comes here first. A sign to stop is passed on once, to all of them,
as SIGINT, which they hold back until they can heed it (`locust_classes`); a second one ends them at once.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from herdgate_loadtest.errors import LoadtestError
from herdgate_loadtest.herd.options import SECRET
from herdgate_loadtest.output_file import write_output

__all__ = ["SIGNS", "run_locust", "variable_of"]

_LOCUSTFILE = Path(__file__).with_name("locust_classes.py")
_ENV = "HERD_"

SIGNS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What is a sign to stop."""


def variable_of(option: str) -> str:
    """The variable of the environment that an option may come from."""
    return f"{_ENV}{option.upper()}"


def run_locust(arguments: Sequence[str], given: Mapping[str, str], *, as_json: bool, html: str = "") -> int:
    """Run it to its end; returns the exit code, 128 and the number of the signal if one has ended it.

    Args:
        arguments: options of Locust.
        given: our own, by name.
        as_json: print the records, and nothing else.
        html: file for Locust's own report; "": none.
    """
    if find_spec("locust") is None:
        raise LoadtestError("herd needs more packages: pip install 'herdgate[loadtest]'")
    with tempfile.TemporaryDirectory(prefix="herdgate-") as folder:
        record, page = Path(folder) / "record", Path(folder) / "page.html"
        shown = {name: value for name, value in given.items() if name != SECRET} | {"record": str(record)}
        quiet = ["--skip-log-setup"] if as_json else []  # warnings and errors are said, one line each
        drawn = ["--html", str(page)] if html else []
        options = [*arguments, *quiet, *drawn, *(f"--herd-{name}={value}" for name, value in shown.items())]
        with _started(options, given[SECRET], output=subprocess.DEVNULL if as_json else None) as locust:
            sign = _watch(locust)
        if sign is not None:
            sys.stderr.write(f"herdgate: {sign.name}: everybody has left; a herd that is stopped proves nothing\n")
            return 128 + sign
        if locust.returncode < 0:
            killer = signal.Signals(-locust.returncode).name
            sys.stderr.write(f"herdgate: Locust was ended by {killer}, and everybody has left: run it again\n")
            return 1
        if as_json and record.exists():
            sys.stdout.write(record.read_text())
        failed = _take_over(page, html)
    return locust.returncode or failed


def _take_over(page: Path, html: str) -> int:
    """Locust's page to where it is wanted; 1 if that cannot be, which Locust would not say in one line."""
    try:
        if page.exists():
            write_output("--locust-html", html, page.read_text(encoding="utf-8"))
    except LoadtestError as error:
        sys.stderr.write(f"herdgate: {error}\n")
        return 1
    return 0


@contextmanager
def _started(options: Sequence[str], secret: str, output: int | None) -> "Iterator[subprocess.Popen[bytes]]":
    """A running one. Signs to stop are held back: here until it is watched, there until it can heed them."""
    # A shell has its background jobs ignore SIGINT, and Locust would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNS)
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "locust", "-f", str(_LOCUSTFILE), *options],
        stdin=subprocess.DEVNULL,
        stdout=output,
        env=_environ(secret),
        process_group=0,
    ) as locust:
        yield locust


def _watch(locust: "subprocess.Popen[bytes]") -> signal.Signals | None:
    """Wait for its end; returns the sign that has ended it."""
    signs: list[signal.Signals] = []

    def pass_on(number: int, _frame: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(locust.pid, signal.SIGKILL if signs else signal.SIGINT)
        signs.append(signal.Signals(number))

    for sign in SIGNS:
        signal.signal(sign, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNS)
    if locust.wait() < 0 or signs:
        with suppress(ProcessLookupError):  # a worker that waits for its master does so for minutes
            os.killpg(locust.pid, signal.SIGKILL)
    return signs[0] if signs else None


def _environ(secret: str) -> dict[str, str]:
    """This one, without Locust's and our options: they were read, and all but the secret are passed on by name."""
    rest = {name: value for name, value in os.environ.items() if not name.startswith((_ENV, "LOCUST_"))}
    return rest | {variable_of(SECRET): secret}
