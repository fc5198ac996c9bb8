"""One worker: `herdgate worker`, which is two processes, the guardian and its child.

Rules: it keeps its name and its port when it is started again. The guardian ends with this process (`demo.leash`), and
its child with it, in good order; with its block both end at once.
"""

import os
import signal
import time
from types import TracebackType
from typing import NamedTuple, Self

from herdgate_loadtest.demo.process import Process
from herdgate_loadtest.errors import CrowdError
from herdgate_loadtest.servers.children import HOST, child_of, free_port
from herdgate_loadtest.servers.emulator import aws_environment
from herdgate_loadtest.servers.lease_table import FLEET, Place

__all__ = ["OwnedWorker", "Seen"]

_APP = "herdgate_loadtest.owned.app:app"


class Seen(NamedTuple):
    """A socket as a worker saw it come.

    Attributes:
        at: monotonic seconds.
        id: of the connection.
        shard, epoch: as the gateway's stamp had them.
    """

    at: float
    id: str
    shard: int
    epoch: int


class OwnedWorker:
    """A worker; a context manager that starts and ends it.

    Args:
        name: also what people read.
        capacity: sockets at once.

    Attributes:
        name: as given.
        url: what gateways dial.
    """

    def __init__(self, name: str, place: Place, capacity: int) -> None:
        self.name = name
        self._place, self._capacity = place, capacity
        self._port = free_port()
        self.url = f"ws://{HOST}:{self._port}"
        self._process: Process | None = None

    @property
    def is_up(self) -> bool:
        """It was started, and neither killed nor stopped since."""
        return self._process is not None

    def start(self) -> None:
        """Start it; it serves some time later."""
        options = ["--name", self.name, "--listen", f"{HOST}:{self._port}", "--capacity", str(self._capacity)]
        where = [*self._place.options, "--redis", self._place.redis, "--fleet", FLEET]
        arguments = ["herdgate", "worker", _APP, *options, *where]
        self._process = Process(self.name, arguments, port=self._port, environ=aws_environment())

    def check(self) -> None:
        """See that it runs, if it should.

        Raises:
            CrowdError: it has ended.
        """
        if self._process is not None:
            self._process.check()

    async def seen(self, since: float = 0.0) -> list[Seen]:
        """The sockets that came since then, monotonic seconds, while it runs.

        Raises:
            CrowdError: it does not answer.
        """
        if self._process is None:
            return []
        return [Seen(*came) for came in (await self._process.ask(f"/stats?since={since!r}"))["came"]]

    def crash(self) -> float:
        """Kill the worker, not its guardian (SIGKILL), and let that do its work: the moment, monotonic seconds.

        Raises:
            CrowdError: it has no child yet.
        """
        child, moment = child_of(self._running().pid), time.monotonic()
        if child is None:
            raise CrowdError(f"{self.name} is not up yet: wait until it is")
        os.kill(child, signal.SIGKILL)
        return moment

    def stop(self) -> float:
        """Have it hand everything over (SIGTERM to the guardian), and do not wait: the moment, monotonic seconds."""
        moment = time.monotonic()
        self._running().terminate()
        return moment

    def is_over(self) -> bool:
        """It has ended, guardian and all, and may be started again."""
        if self._process is not None and not self._process.runs:
            self.end()
        return self._process is None

    def end(self) -> None:
        """At once, both of them, if they run."""
        if self._process is None:
            return
        process, self._process = self._process, None
        child = child_of(process.pid)
        with process:
            process.kill()  # first, so that it tells nobody
        if child is not None:
            os.kill(child, signal.SIGKILL)

    def _running(self) -> Process:
        assert self._process is not None, f"{self.name} does not run"
        return self._process

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()
