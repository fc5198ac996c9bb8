"""Gateways of the benchmark as processes: started together, asked together, ended with their block."""

import asyncio
import json
import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass

from herdgate_loadtest.bench.echo import Settings
from herdgate_loadtest.bench.samples import Sample
from herdgate_loadtest.demo.process import HOST, Process, listening

__all__ = ["Front", "Gateway", "Told", "ask_all", "run_gateways"]


@dataclass(frozen=True, slots=True)
class Told:
    """What a gateway has counted; moments are monotonic seconds.

    Attributes:
        admitted, denied: arrivals so far.
        permits: taken now.
        calls: scripts sent to Redis so far.
        is_up: it decides with Redis.
        gateways: that share the calendar, as it was told.
        admitted_at: moments of admission.
        samples: ten a second.
    """

    admitted: int
    denied: int
    permits: int
    calls: int
    is_up: bool
    gateways: int
    admitted_at: Sequence[float]
    samples: Sequence[Sample]


class Front(ABC):
    """A process that crowds go to.

    Args:
        process: it; its last listener answers what it is asked.
        port: where clients connect, on 127.0.0.1.

    Attributes:
        port: as given.
    """

    def __init__(self, process: Process, port: int) -> None:
        self._process = process
        self.port = port

    @property
    def url(self) -> str:
        """Where crowds go."""
        return f"ws://{HOST}:{self.port}/echo"

    @abstractmethod
    async def is_in(self, gateways: int) -> bool:
        """It decides with Redis, and knows of so many gateways, itself included.

        Raises:
            CrowdError: it does not answer.
        """

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        os.kill(self._process.pid, signal.SIGKILL)


class Gateway(Front):
    """An echo app behind the middleware; see `herdgate_loadtest.bench.echo`."""

    async def is_in(self, gateways: int) -> bool:
        """As of now."""
        told = await self.ask(time.monotonic())
        return told.is_up and told.gateways >= gateways

    async def ask(self, since: float = 0.0) -> Told:
        """What it has counted; moments and samples since `since`, monotonic seconds.

        Raises:
            CrowdError: it does not answer.
        """
        told = await self._process.ask(f"/stats?since={since!r}")
        return Told(**told | {"samples": [Sample(*sample) for sample in told["samples"]]})


async def ask_all(gateways: Sequence[Gateway], since: float = 0.0) -> list[Told]:
    """What each has counted.

    Raises:
        CrowdError: one of them does not answer.
    """
    return await asyncio.gather(*(gateway.ask(since) for gateway in gateways))


@contextmanager
def run_gateways(count: int, settings: Settings) -> Iterator[list[Gateway]]:
    """Start gateways; they end with the block."""
    with ExitStack() as stack:
        processes = [stack.enter_context(_start(number, settings)) for number in range(1, count + 1)]
        yield [Gateway(process, process.port) for process in processes]


def _start(number: int, settings: Settings) -> Process:
    with listening() as listener:
        arguments = ["herdgate_loadtest.bench.echo", json.dumps(asdict(settings)), str(listener.fileno())]
        return Process(f"gateway {number}", arguments, [listener])
