"""Gateways in front of workers: `herdgate serve` as processes.

Rules: rate and burst are far above any crowd here, so that only workers are ever full.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from herdgate_loadtest.bench.echo import FLEET
from herdgate_loadtest.bench.gateways import Front
from herdgate_loadtest.bench.workers import Worker
from herdgate_loadtest.demo.process import Process, listening
from herdgate_loadtest.servers.redis import RedisServer

__all__ = ["Counts", "Relay", "run_relays"]

_RATE = 10_000  # a second; the burst is as large


@dataclass(frozen=True, slots=True)
class Counts:
    """What a gateway has counted, up to a quarter of a second ago.

    Attributes:
        is_up: it decides with Redis.
        gateways: that share the calendar, as it was told.
        admitted, full: arrivals so far that were admitted, and that no worker had room for.
        open: sockets.
    """

    is_up: bool
    gateways: int
    admitted: int
    full: int
    open: int


class Relay(Front):
    """A running gateway."""

    async def is_in(self, gateways: int) -> bool:
        """As it was a quarter of a second ago."""
        counts = await self.counts()
        return counts.is_up and counts.gateways >= gateways

    async def counts(self) -> Counts:
        """What it has counted.

        Raises:
            CrowdError: it does not answer.
        """
        (gate,) = (await self._process.ask("/status.json"))["gates"].values()
        fleet, full = gate["fleet"], gate["denied"].get("full", 0)
        return Counts(fleet["is_up"], fleet["gateways"], gate["admitted"], full, gate["open"])


@contextmanager
def run_relays(count: int, workers: Sequence[Worker], redis: RedisServer) -> Iterator[list[Relay]]:
    """Start gateways in front of these workers; they end with the block."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="herdgate-")))
        settings = folder / "herdgate.toml"
        settings.write_text(f'[fleet]\nredis = "{redis.url}"\nname = "{FLEET}"\n')
        gateways = []
        for number in range(1, count + 1):
            process, port = _start(number, settings, workers)
            gateways.append(Relay(stack.enter_context(process), port))
        yield gateways


def _start(number: int, settings: Path, workers: Sequence[Worker]) -> tuple[Process, int]:
    """The process, and its port for clients."""
    with listening() as clients, listening() as admin:
        options = ["--config", str(settings), "--rate", str(_RATE)]
        options += ["--listen", f"fd:{clients.fileno()}", "--admin", f"fd:{admin.fileno()}"]
        options += [option for worker in workers for option in ("--worker", worker.url)]
        process = Process(f"gateway {number}", ["herdgate", "serve", *options], [clients, admin])
        return process, clients.getsockname()[1]
