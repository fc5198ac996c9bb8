"""One process of the demo: started with listening sockets, asked over HTTP, ended with its block.

Rules: Ctrl-C is its parent's business, so it has a process group of its own; it ends with its parent (`leash`). What it
says is kept, and told once it is over, so that the picture stays whole. No HERDGATE_* of the environment reaches it:
its settings are the demo's.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from types import TracebackType
from typing import Any, Self

from herdgate_loadtest.errors import CrowdError

__all__ = ["HOST", "Process", "listening"]

HOST = "127.0.0.1"

_BACKLOG = 4096
_ANSWER_S = 30.0  # it may still be starting
_STOP_S = 10.0
_BAD_SETTINGS = 2
_OK = 200
_LEASH = (sys.executable, "-m", "herdgate_loadtest.demo.leash")


def listening() -> socket.socket:
    """A listening socket on a loopback port that the kernel chose."""
    return socket.create_server((HOST, 0), backlog=_BACKLOG)


class Process:
    """A running process; a context manager that ends it.

    Args:
        name: what people read.
        arguments: a module and its arguments.
        listeners: passed on under their own descriptors, for the caller to close; the last one answers HTTP.
        port: that answers HTTP, where the process opens it itself.
        environ: all of it; None: this one, without HERDGATE_*.

    Attributes:
        name: as given.
        port: where it is asked, on 127.0.0.1.
        pid: its id.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        listeners: Sequence[socket.socket] = (),
        *,
        port: int | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.port: int = listeners[-1].getsockname()[1] if port is None else port
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._popen = subprocess.Popen(  # noqa: S603
            [*_LEASH, *arguments],
            pass_fds=[listener.fileno() for listener in listeners],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            env=_own_environ() if environ is None else environ,
            process_group=0,
        )
        self.pid = self._popen.pid

    @property
    def runs(self) -> bool:
        """It has not ended."""
        return self._popen.poll() is None

    def terminate(self) -> None:
        """Tell it to stop (SIGTERM)."""
        self._popen.terminate()

    def kill(self) -> None:
        """End it at once (SIGKILL), and say nothing of what it said."""
        self._popen.kill()
        self._popen.wait()

    def check(self) -> None:
        """See that it runs.

        Raises:
            CrowdError: it has ended.
        """
        code = self._popen.poll()
        if code is None:
            return
        said = self._said().split("\n")[-1]
        if code == _BAD_SETTINGS and said.startswith("herdgate: "):  # its own line tells the way out
            raise CrowdError(f"{self.name} cannot start: {said.removeprefix('herdgate: ')}")
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        raise CrowdError(f"{self.name} has ended {how}{said and f' ({said})'}: start the demo again")

    async def ask(self, path: str) -> dict[str, Any]:
        """What it answers to a GET.

        Raises:
            CrowdError: it does not answer.
        """
        return await asyncio.to_thread(self._ask, path)

    def is_ready(self) -> bool:
        """It says so itself at `/readyz`, as gateways do."""
        connection = HTTPConnection(HOST, self.port, timeout=1.0)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == _OK
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def _ask(self, path: str) -> dict[str, Any]:
        connection = HTTPConnection(HOST, self.port, timeout=_ANSWER_S)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            if response.status != _OK:
                raise HTTPException(f"status {response.status}")
            answer: dict[str, Any] = json.load(response)
        except (OSError, HTTPException, ValueError) as error:
            raise CrowdError(f"{self.name} does not answer ({error}): start the demo again") from error
        finally:
            connection.close()
        return answer

    def _said(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace").strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        ended_by_itself = self._popen.poll() is not None  # then `check` has told why
        with self._log, self._popen:
            self._popen.terminate()
            try:
                self._popen.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._popen.kill()
            if not ended_by_itself and (said := self._said()):
                sys.stderr.write(f"{said}\n")


def _own_environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("HERDGATE_")}
