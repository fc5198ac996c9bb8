"""The demo server as a process of its own: uvicorn on a loopback port that the kernel chose.

Run as `python -m herdgate_loadtest.demo.server FD RATE`, it serves the chat app on the listening socket it was handed.

Rules: Ctrl-C is its parent's business, so it has a process group of its own. It ends with its parent, however that one
ends: its standard input ends then. What it says is kept, and told once it is over, so that the picture stays whole.
"""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from typing import IO, Any, NoReturn

import uvicorn

from herdgate import Gate, Limits
from herdgate_loadtest.demo.chat import build
from herdgate_loadtest.errors import CrowdError

__all__ = ["DemoServer", "demo_limits", "run_server"]

_BACKLOG = 4096
_ANSWER_S = 10.0
_STOP_S = 10.0
_LOOK_S = 0.1


def demo_limits(rate: float) -> Limits:
    """What the demo's gate admits: with a small bucket, so that no second is much busier than the rate."""
    return Limits(rate=rate, burst=max(1.0, rate / 20))


class DemoServer:
    """A running demo server.

    Attributes:
        port: on 127.0.0.1.
        process: its process.
        log: what it has said.
    """

    def __init__(self, port: int, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
        self.port = port
        self.process = process
        self.log = log

    @property
    def url(self) -> str:
        """Where the crowd goes."""
        return f"ws://127.0.0.1:{self.port}/chat"

    async def watch(self) -> NoReturn:
        """Watch over the process while it runs.

        Raises:
            CrowdError: it has ended.
        """
        while True:
            if (code := self.process.poll()) is not None:
                how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
                said = self.said().split("\n")[-1]
                raise CrowdError(f"the demo server has ended {how}{said and f' ({said})'}: start the demo again")
            await asyncio.sleep(_LOOK_S)

    def said(self) -> str:
        """All that it has written so far."""
        self.log.seek(0)
        return self.log.read().decode(errors="replace").strip()

    async def stats(self, since: float) -> dict[str, Any]:
        """The gate's counts, and the moments of all admissions since `since`, monotonic seconds.

        Raises:
            CrowdError: the server does not answer.
        """
        return await asyncio.to_thread(self._stats, since)

    def _stats(self, since: float) -> dict[str, Any]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=_ANSWER_S)
        try:
            connection.request("GET", f"/stats?since={since!r}")
            stats: dict[str, Any] = json.load(connection.getresponse())
        except (OSError, HTTPException, ValueError) as error:
            raise CrowdError(f"the demo server does not answer ({error})") from error
        finally:
            connection.close()
        return stats


@contextmanager
def run_server(rate: float) -> Iterator[DemoServer]:
    """Start a server that admits `rate` a second; it ends with the block."""
    with tempfile.TemporaryFile() as log:
        server = _start(rate, log)
        try:
            yield server
        finally:
            ended_by_itself = server.process.poll() is not None  # then `watch` has told why
            _end(server.process)
            if not ended_by_itself and (said := server.said()):
                sys.stderr.write(f"{said}\n")


def _start(rate: float, log: IO[bytes]) -> DemoServer:
    with socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG) as listener:
        port: int = listener.getsockname()[1]
        command = [sys.executable, "-m", "herdgate_loadtest.demo.server", str(listener.fileno()), repr(rate)]
        process = subprocess.Popen(  # noqa: S603
            command, pass_fds=[listener.fileno()], stdin=subprocess.PIPE, stdout=log, stderr=log, process_group=0
        )
    return DemoServer(port, process, log)


def _end(process: subprocess.Popen[bytes]) -> None:
    with process:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()


def main() -> None:
    """Serve until told to stop."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    logging.getLogger("herdgate").setLevel(logging.ERROR)  # denials are what the picture shows
    descriptor, rate = int(sys.argv[1]), float(sys.argv[2])
    app = build(Gate(demo_limits(rate)))
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, proxy_headers=False, backlog=_BACKLOG, timeout_graceful_shutdown=1
    )
    with socket.socket(fileno=descriptor) as listener:
        uvicorn.Server(config).run(sockets=[listener])


def _end_with_parent() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
