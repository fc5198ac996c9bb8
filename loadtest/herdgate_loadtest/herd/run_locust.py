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

__all__ = ["SIGNS", "run_locust", "variable_of"]

_LOCUSTFILE = Path(__file__).with_name("locust_classes.py")
_ENV = "HERD_"

SIGNS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What is a sign to stop."""


def variable_of(option: str) -> str:
    """The variable of the environment that an option may come from."""
    return f"{_ENV}{option.upper()}"


def run_locust(arguments: Sequence[str], given: Mapping[str, str], *, as_json: bool) -> int:
    """Run it to its end; returns the exit code, 128 and the number of the signal if one has ended it.

    Args:
        arguments: options of Locust.
        given: our own, by name.
        as_json: print the records, and nothing else.
    """
    if find_spec("locust") is None:
        raise LoadtestError("herd needs more packages: pip install 'herdgate[loadtest]'")
    with tempfile.TemporaryDirectory(prefix="herdgate-") as folder:
        record = Path(folder) / "record"
        shown = {name: value for name, value in given.items() if name != SECRET} | {"record": str(record)}
        quiet = ["--skip-log-setup"] if as_json else []  # warnings and errors are said, one line each
        options = [*arguments, *quiet, *(f"--herd-{name}={value}" for name, value in shown.items())]
        with _started(options, given[SECRET], output=subprocess.DEVNULL if as_json else None) as locust:
            sign = _watch(locust)
        if sign is not None:
            sys.stderr.write(f"herdgate: {sign.name}: everybody has left; a herd that is stopped proves nothing\n")
            return 128 + sign
        if as_json and record.exists():
            sys.stdout.write(record.read_text())
    return locust.returncode


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
    locust.wait()
    if not signs:
        return None
    with suppress(ProcessLookupError):  # a worker that waits for its master does so for minutes
        os.killpg(locust.pid, signal.SIGKILL)
    return signs[0]


def _environ(secret: str) -> dict[str, str]:
    """This one, without Locust's and our options: they were read, and all but the secret are passed on by name."""
    rest = {name: value for name, value in os.environ.items() if not name.startswith((_ENV, "LOCUST_"))}
    return rest | {variable_of(SECRET): secret}
