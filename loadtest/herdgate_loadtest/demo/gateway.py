"""The demo's gateway: `herdgate serve` with settings of its own, and what its gate has counted.

Its bucket is small, so that no second is much busier than the rate. It holds handshakes up to three seconds:
longer than the cut of a large crowd keeps it busy, so that nobody who has a firm slot comes too late for it.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from herdgate_loadtest.demo.process import HOST, Process, listening
from herdgate_loadtest.errors import CrowdError
from herdgate_loadtest.gate_counts import GateCounts, counts_since

__all__ = ["Gateway", "burst_of", "start_gateway"]

_LOOK_S = 0.05
_FRESH_S = 10.0


def burst_of(rate: float) -> float:
    """Admissions at once: a twentieth of a second of the rate."""
    return max(1.0, rate / 20)


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway.

    Attributes:
        process: its process, asked at its admin listener.
        url: where the crowd goes.
    """

    process: Process
    url: str

    async def counts(self) -> GateCounts:
        """The counts as of now or later: those it publishes are up to a quarter of a second old.

        Raises:
            CrowdError: it does not answer, or publishes nothing.
        """
        began = sent = time.monotonic()
        while True:
            status = await self.process.ask("/status.json")
            if counts := counts_since(status, asked_at=sent, since=began):
                return counts
            if sent - began > _FRESH_S:
                raise CrowdError(f"the gateway's counts are {status['age_s']:.0f} s old: its main loop is blocked")
            await asyncio.sleep(_LOOK_S)
            sent = time.monotonic()


def start_gateway(folder: Path, rate: float, workers: Sequence[Process], processes: int) -> Gateway:
    """Start a gateway that admits `rate` a second, in front of `workers`; its settings are written to `folder`."""
    with listening() as clients, listening() as admin:
        file = folder / "herdgate.toml"
        file.write_text(_settings(rate, workers, processes, clients.fileno(), admin.fileno()))
        process = Process("the gateway", ["herdgate", "serve", "--config", str(file)], [clients, admin])
        return Gateway(process, f"ws://{HOST}:{clients.getsockname()[1]}/chat")


def _settings(rate: float, workers: Sequence[Process], processes: int, clients: int, admin: int) -> str:
    urls = [f"ws://{HOST}:{worker.port}" for worker in workers]
    return f"""\
listen = ["fd:{clients}"]
workers = {json.dumps(urls)}
processes = {processes}
rate = {rate!r}
burst = {burst_of(rate)!r}
max_wait_s = 3.0

[admin]
listen = "fd:{admin}"
"""
