"""A redis-server of our own: on a free port of 127.0.0.1, in memory only, ended with its block.

Rules: it is ended by its process id, and on Linux also when this process dies. Commands go over a connection of their
own each, so that none is cut off with the server.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from herdgate_loadtest.errors import CrowdError, PreflightError
from herdgate_loadtest.servers.children import HOST, dies_with_us, free_port

__all__ = ["RedisServer", "redis_server"]

_START_S = 10.0
_TRIES = 5  # a free port may be taken between asking for one and using it
_MEMORY_ONLY = ("--save", "", "--appendonly", "no")
_READY = b"Ready to accept connections"


class RedisServer:
    """One server process.

    Args:
        folder: where it works, and logs to.

    Raises:
        ConfigurationError: there is no redis-py.
        PreflightError: there is no redis-server.
        CrowdError: it does not start.
    """

    def __init__(self, folder: Path) -> None:
        self._binary = _find()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self.start()

    @property
    def url(self) -> str:
        """Where it is; the same after a restart."""
        return f"redis://{HOST}:{self._port}/0"

    def start(self) -> None:
        """Start it, empty, and wait until it serves."""
        for _ in range(_TRIES):
            port = self._port or free_port()
            if self._starts(port):
                self._port = port
                return
        raise CrowdError(f"redis-server does not start ({self._said()}): mend it, or put another one on the PATH")

    def pause(self) -> None:
        """It hangs from now on: connections stay, and nothing is answered."""
        self._signal(signal.SIGSTOP)

    def kill(self) -> None:
        """End it at once, if it runs."""
        if self._process is not None:
            process, self._process = self._process, None
            with process:
                process.kill()

    def command(self, *words: str | int) -> Any:
        """The reply to one command; texts are `str`."""
        from redis import Redis

        with Redis(host=HOST, port=self._port, socket_timeout=_START_S, decode_responses=True) as client:
            return client.execute_command(*words)

    def calls(self) -> int:
        """Scripts it was asked for since its start (EVAL, EVALSHA)."""
        told = self.command("INFO", "commandstats")
        return sum(told.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("eval", "evalsha"))

    def _signal(self, number: int) -> None:
        assert self._process is not None, "not running"
        os.kill(self._process.pid, number)

    def _starts(self, port: int) -> bool:
        place = ("--port", str(port), "--bind", HOST, "--dir", str(self._folder))
        with (self._folder / "log").open("wb") as log:
            command = [*dies_with_us(), self._binary, *place, *_MEMORY_ONLY]
            self._process = process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603
        end = time.monotonic() + _START_S
        while _READY not in (self._folder / "log").read_bytes():
            if process.poll() is not None or time.monotonic() > end:
                self.kill()
                return False
            time.sleep(0.005)
        return True

    def _said(self) -> str:
        lines = (self._folder / "log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it says nothing"


@contextmanager
def redis_server() -> Iterator[RedisServer]:
    """A running server; it ends with the block.

    Raises:
        ConfigurationError, PreflightError, CrowdError: as `RedisServer`.
    """
    with tempfile.TemporaryDirectory(prefix="herdgate-redis-") as folder:
        server = RedisServer(Path(folder))
        try:
            yield server
        finally:
            server.kill()


def _find() -> str:
    import_module("herdgate.stores.redis.driver")  # it tells in one line where redis-py is missing
    found = shutil.which("redis-server")
    if found is None:
        raise PreflightError(
            "there is no redis-server on the PATH: install one (scripts/setup, or apt-get install redis-server)"
        )
    return found
