"""A real server in a process of its own, started by its own command: uvicorn with workers, hypercorn, daphne.

    with command("hypercorn", {"make": "tests.framework_apps.quart:make", "limits": {"rate": 1}}) as server:
        ... server.port, server.log()

Rules: the port is reserved before and told to the command, as its users would; all processes are one group, which is
ended by the id of its leader, and ends by itself when the test process dies.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tests.servers import ROOT, Server, poll

__all__ = ["command"]

APP = "tests.framework_apps.served:app"
START_S = 60.0
END_S = 10.0
PLACES = {
    "uvicorn": ["--port={port}", "--no-proxy-headers", "--timeout-graceful-shutdown=1"],
    "hypercorn": ["--bind=127.0.0.1:{port}", "--graceful-timeout=1"],
    "daphne": ["--port={port}"],
}


@contextmanager
def command(name: str, app: dict[str, Any], *arguments: str) -> Iterator[Server]:
    """Run a server's command with an app of `tests.framework_apps.served` while the block runs."""
    with tempfile.TemporaryDirectory() as folder, _reserved_port() as port:
        log_file = Path(folder) / "log"
        places = [place.format(port=port) for place in PLACES[name]]
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                # Not `-m`: processes that the command spawns would load that module again.
                [sys.executable, "-c", "from tests.commands import _run; _run()", name, *places, *arguments, APP],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1", "HERDGATE_TEST_APP": json.dumps(app)},
            )
        try:
            poll(lambda: process.poll() is not None or _listens(port), f"{name} listens", within_s=START_S)
            if process.poll() is not None:
                raise RuntimeError(f"the server did not start:\n{log_file.read_text()}")
            yield Server(name, process.pid, port, log_file)
        finally:
            _end(process)


@contextmanager
def _reserved_port() -> Iterator[int]:
    """A port that nobody else is given: bound but not listened to, which leaves it to who asks for it by number."""
    with socket.socket() as place:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind(("127.0.0.1", 0))
        yield place.getsockname()[1]


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    with process:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def _run() -> None:
    """The server process."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.argv = sys.argv[1:]
    (script,) = entry_points(group="console_scripts", name=sys.argv[0])
    sys.path.insert(0, str(ROOT))
    sys.exit(script.load()())


def _end_with_parent() -> None:
    sys.stdin.read()
    os.killpg(os.getpgrp(), signal.SIGKILL)
