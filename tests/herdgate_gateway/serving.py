"""`herdgate serve` as users start it: a process of its own, on a listener that the test has bound.

    with serving("rate = 10", worker.url) as gateway:
        ... gateway.port, gateway.control("rate", "5"), gateway.log()

It is ended by its process id.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests.servers import END_S, ROOT, START_S, poll

__all__ = ["Serving", "herdgate", "launched", "serving"]

DRAIN_S = 3.0
"""Less than a test waits for the end of a gateway, however slow its rate, unless its settings say."""

HERDGATE = (sys.executable, "-c", "from herdgate.cli import main; main()")


def herdgate(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [*HERDGATE, *arguments],
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
        cwd=ROOT,
        env={**os.environ, **environ},
    )


@dataclass(frozen=True)
class Serving:
    """A running gateway.

    Attributes:
        port: where clients connect, on 127.0.0.1.
        folder: holds `herdgate.toml`, `log` and the control socket.
    """

    port: int
    folder: Path
    process: subprocess.Popen[bytes]

    def log(self) -> str:
        """What it has written so far."""
        return (self.folder / "log").read_text()

    def control(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a subcommand against its control socket."""
        return herdgate(*arguments, "--socket", str(self.folder / "control"))

    def status(self) -> dict[str, Any]:
        """Its status."""
        finished = self.control("status", "--json")
        assert finished.returncode == 0, finished.stderr
        status: dict[str, Any] = json.loads(finished.stdout)
        return status

    def end(self, sign: signal.Signals = signal.SIGTERM) -> int:
        """Tell it to stop, and wait: its exit code."""
        self.process.send_signal(sign)
        return self.process.wait(END_S)


@contextmanager
def serving(toml: str, *workers: str, by: Sequence[str] = ()) -> Iterator[Serving]:
    """Serve these settings while the block runs; see `launched`."""
    with launched(f"workers = {json.dumps(workers)}\n{toml}", by=by) as gateway:
        process = gateway.process
        poll(lambda: process.poll() is not None or _is_healthy(gateway.port), "the gateway serves", within_s=START_S)
        assert process.poll() is None, gateway.log()
        yield gateway


@contextmanager
def launched(
    toml: str, *, fill: Callable[[Path], object] = lambda _: None, by: Sequence[str] = ()
) -> Iterator[Serving]:
    """Start a gateway, and do not wait for it.

    Args:
        toml: its settings; `{folder}` is its folder.
        fill: puts into the folder what the settings name.
        by: a command that starts the one it is given.
    """
    with tempfile.TemporaryDirectory() as name, socket.create_server(("127.0.0.1", 0)) as listener:
        folder, port = Path(name), listener.getsockname()[1]
        fill(folder)
        listens = f'listen = ["fd:{listener.fileno()}"]\n'
        if "drain" not in toml:
            listens += f"drain = {{ sigterm_s = {DRAIN_S} }}\n"
        admin = f'[admin]\nlisten = "off"\nsocket = "{folder}/control"\n'
        (folder / "herdgate.toml").write_text(f"{listens}{toml}\n{admin}".replace("{folder}", name))
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [*by, *HERDGATE, "serve", "--config", str(folder / "herdgate.toml")],
                cwd=ROOT,
                stdout=log,
                stderr=log,
                pass_fds=[listener.fileno()],
            )
        with process:
            try:
                yield Serving(port, folder, process)
            finally:
                process.terminate()
                try:
                    process.wait(END_S)
                except subprocess.TimeoutExpired:
                    process.kill()


def _is_healthy(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
