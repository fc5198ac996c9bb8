"""The demo's fleet: one gateway in front of two workers, started and ended together."""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from herdgate_loadtest.demo.gateway import Gateway, start_gateway
from herdgate_loadtest.demo.process import Process
from herdgate_loadtest.demo.worker import admissions, start_worker

__all__ = ["WORKERS", "Fleet", "run_fleet"]

WORKERS = 2

_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Fleet:
    """A running fleet.

    Attributes:
        gateway: where the crowd goes.
        workers: where the gateway sends it.
    """

    gateway: Gateway
    workers: tuple[Process, ...]

    @property
    def processes(self) -> tuple[Process, ...]:
        """All of them."""
        return (self.gateway.process, *self.workers)

    async def serves(self) -> None:
        """Wait until every process answers.

        Raises:
            CrowdError: one of them does not.
        """
        await asyncio.gather(self.gateway.counts(), self.admissions(time.monotonic()))

    async def watch(self) -> NoReturn:
        """Watch over the processes while they run.

        Raises:
            CrowdError: one of them has ended.
        """
        while True:
            for process in self.processes:
                process.check()
            await asyncio.sleep(_LOOK_S)

    async def admissions(self, since: float) -> list[float]:
        """The moments of all admissions since `since` as the workers saw them, monotonic seconds.

        Raises:
            CrowdError: a worker does not answer.
        """
        told = await asyncio.gather(*(admissions(worker, since) for worker in self.workers))
        return sorted(moment for moments in told for moment in moments)


@contextmanager
def run_fleet(rate: float, processes: int) -> Iterator[Fleet]:
    """Start a fleet that admits `rate` a second by so many processes; it ends with the block, the gateway first."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="herdgate-")))
        workers = tuple(stack.enter_context(start_worker(number)) for number in range(1, WORKERS + 1))
        gateway = start_gateway(folder, rate, workers, processes)
        stack.enter_context(gateway.process)
        yield Fleet(gateway, workers)
