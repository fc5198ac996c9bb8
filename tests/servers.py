"""A real uvicorn in a process of its own, on a free port of 127.0.0.1.

    with uvicorn("tests.apps:switchboard", ws="wsproto") as server:
        ... server.port, server.log()

Rules: the server process binds port 0 and tells the port once it serves; everything it says is kept in one file; it
is ended by its process id, and ends by itself when the test process dies.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

__all__ = ["IMPLEMENTATIONS", "Server", "poll", "uvicorn"]

ROOT = Path(__file__).parent.parent
IMPLEMENTATIONS = ("websockets-sansio", "wsproto")
"""uvicorn's WebSocket implementations that the middleware is held to."""

START_S = 30.0
END_S = 10.0


@dataclass(frozen=True)
class Server:
    """A running uvicorn.

    Attributes:
        ws: its WebSocket implementation.
        log_file: everything it has written so far.
    """

    ws: str
    pid: int
    port: int
    log_file: Path

    def log(self) -> str:
        """What it has logged so far, access log included."""
        return self.log_file.read_text()


@contextmanager
def uvicorn(
    app: str, *, ws: str = "websockets-sansio", log_level: str | None = None, **settings: object
) -> Iterator[Server]:
    """Serve an app while the block runs.

    Args:
        app: import string of a factory.
        ws: the WebSocket implementation.
        log_level: None: uvicorn's default.
        settings: arguments of the factory, of types that JSON has.
    """
    job = json.dumps({"app": app, "ws": ws, "log_level": log_level, "settings": settings})
    with tempfile.TemporaryDirectory() as folder:
        log_file = Path(folder) / "log"
        told, tell = os.pipe()
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.servers", job, str(tell)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=(tell,),
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        os.close(tell)
        try:
            yield Server(ws, process.pid, _read_port(told, log_file), log_file)
        finally:
            os.close(told)
            _end(process)


def poll(condition: Callable[[], bool], what: str, *, within_s: float = 8.0) -> None:
    """Wait until `condition` holds; fail if it does not within the time."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, f"not within {within_s} s: {what}"
        time.sleep(0.01)


def _read_port(told: int, log_file: Path) -> int:
    readable, _, _ = select.select([told], [], [], START_S)
    text = os.read(told, 16) if readable else b""
    if not text:
        raise RuntimeError(f"the server did not start:\n{log_file.read_text()}")
    return int(text)


def _end(process: subprocess.Popen[bytes]) -> None:
    with process:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()


def _serve(job: str, tell: int) -> None:
    """The server process."""
    from uvicorn import Config
    from uvicorn import Server as Uvicorn
    from uvicorn.importer import import_from_string

    asked: dict[str, Any] = json.loads(job)
    factory = partial(import_from_string(asked["app"]), **asked["settings"])
    options = {"log_level": asked["log_level"]} if asked["log_level"] else {}
    config = Config(
        factory,
        factory=True,
        ws=asked["ws"],
        proxy_headers=False,
        timeout_graceful_shutdown=1,
        backlog=4096,
        **options,
    )

    class Telling(Uvicorn):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                os.write(tell, b"%d" % listener.getsockname()[1])
            os.close(tell)

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        threading.Thread(target=_end_with_parent, daemon=True).start()
        Telling(config).run([listener])


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
