"""The demo server as a process of its own: uvicorn on a loopback port that the kernel chose.

Run as `python -m herdgate_loadtest.demo.server FD RATE`, it serves the chat app on the listening socket it was handed.
"""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from typing import Any

import uvicorn

from herdgate import Gate, Limits
from herdgate_loadtest.demo.chat import build
from herdgate_loadtest.errors import CrowdError

__all__ = ["DemoServer", "run_server"]

_BACKLOG = 4096
_ANSWER_S = 10.0
_STOP_S = 10.0


class DemoServer:
    """A running demo server.

    Attributes:
        port: on 127.0.0.1.
    """

    def __init__(self, port: int) -> None:
        self.port = port

    @property
    def url(self) -> str:
        """Where the crowd goes."""
        return f"ws://127.0.0.1:{self.port}/chat"

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
    with socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG) as listener:
        port: int = listener.getsockname()[1]
        command = [sys.executable, "-m", "herdgate_loadtest.demo.server", str(listener.fileno()), repr(rate)]
        process = subprocess.Popen(command, pass_fds=[listener.fileno()])  # noqa: S603
    try:
        yield DemoServer(port)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    """Serve until told to stop."""
    descriptor, rate = int(sys.argv[1]), float(sys.argv[2])
    app = build(Gate(Limits(rate=rate)))
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, proxy_headers=False, backlog=_BACKLOG, timeout_graceful_shutdown=1
    )
    with socket.socket(fileno=descriptor) as listener:
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
