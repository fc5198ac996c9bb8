"""Servers of others that tests start: on free ports of 127.0.0.1, in temporary folders, and never left behind."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

__all__ = ["TRIES", "ChildServer", "dies_with_us", "free_port"]

TRIES = 5  # free ports may be taken between asking for one and using it


def free_port() -> int:
    """One that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def dies_with_us() -> list[str]:
    """What to put before a command, so that it ends when this process does (Linux)."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []


class ChildServer:
    """One server process, which logs to its folder.

    Attributes:
        port: of 127.0.0.1.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None, "not running"
        return self._process.pid

    def log(self) -> str:
        """What it has logged since its last start."""
        return (self._folder / "log").read_text()

    def kill(self) -> None:
        """End it at once (SIGKILL), if it runs, paused or not."""
        if self._process is not None:
            process, self._process = self._process, None
            with process:
                process.kill()

    def pause(self) -> None:
        """Stop the process (SIGSTOP): connections stay, and nothing is answered."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)

    def _launch(
        self,
        command: Sequence[str],
        serves: Callable[[], bool],
        within_s: float,
        environment: Mapping[str, str] | None = None,
    ) -> bool:
        """Start a process; True when it serves, False if it ends instead, or takes too long."""
        with (self._folder / "log").open("wb") as log:
            self._process = process = subprocess.Popen(
                [*dies_with_us(), *command], stdout=log, stderr=log, env=environment, cwd=self._folder
            )
        end = time.monotonic() + within_s
        while not serves():
            if process.poll() is not None or time.monotonic() > end:
                self.kill()
                return False
            time.sleep(0.01)
        return True
