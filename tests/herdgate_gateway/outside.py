"""`herdgate serve` beside workers in the loop of the test, looked at from outside: its files, its memory, its counts.

    async with echo_worker() as worker, beside(toml, worker.url) as gateway:
        before = files(gateway)
        ...

It starts and ends in a thread, so that the workers in the loop answer it meanwhile.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.herdgate_gateway.admin.running import ask
from tests.herdgate_gateway.gateways import until
from tests.herdgate_gateway.serving import Serving, serving

__all__ = ["beside", "counts", "files", "has_files", "is_idle", "peak_bytes", "reset_peak"]


@asynccontextmanager
async def beside(toml: str, *workers: str) -> AsyncIterator[Serving]:
    """Serve these settings while the block runs."""
    gateway = serving(toml, *workers)
    try:
        yield await asyncio.to_thread(gateway.__enter__)
    finally:
        await asyncio.to_thread(gateway.__exit__, None, None, None)


async def counts(gateway: Serving, route: str = "default") -> dict[str, Any]:
    """What its gate counts; a quarter of a second old at most."""
    answer = await asyncio.to_thread(ask, gateway.folder / "control", "/status.json")
    gate: dict[str, Any] = answer.json()["gates"][route]
    return gate


async def is_idle(gateway: Serving, within_s: float = 8.0) -> None:
    """Wait until it has no permit."""
    end = asyncio.get_running_loop().time() + within_s
    while (now := await counts(gateway))["open"] or now["pending"]:
        assert asyncio.get_running_loop().time() < end, f"not idle within {within_s} s: {now}"
        await asyncio.sleep(0.05)


def files(gateway: Serving) -> int:
    """File descriptors it has open."""
    return len(os.listdir(f"/proc/{gateway.process.pid}/fd"))  # noqa: PTH208


async def has_files(gateway: Serving, most: int, within_s: float = 8.0) -> None:
    """Wait until it has no more than that many."""
    await until(lambda: files(gateway) <= most, f"{most} files", within_s=within_s)


def reset_peak(gateway: Serving) -> int:
    """Resident bytes now, from which the peak counts anew (proc(5), clear_refs)."""
    Path(f"/proc/{gateway.process.pid}/clear_refs").write_text("5")
    return _memory(gateway, "VmRSS")


def peak_bytes(gateway: Serving) -> int:
    """Most resident bytes since then."""
    return _memory(gateway, "VmHWM")


def _memory(gateway: Serving, name: str) -> int:
    lines = Path(f"/proc/{gateway.process.pid}/status").read_text().splitlines()
    (size,) = (line.split()[1] for line in lines if line.startswith(f"{name}:"))
    return int(size) * 1024
