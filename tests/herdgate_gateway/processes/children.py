"""`herdgate serve` with several processes, and its children one by one.

async with serving_children("rate = 10", worker.url) as gateway:
    ... (await status(gateway))["children"]
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx

from herdgate.asgi import Scope
from tests.herdgate_gateway.serving import Serving, serving
from tests.servers import START_S
from tests.wire import eventually

__all__ = [
    "all_ready",
    "ask_control",
    "counted",
    "gone",
    "member_of",
    "pids",
    "replaced",
    "serving_children",
    "status",
    "stopped",
]


@asynccontextmanager
async def serving_children(toml: str, *workers: str, count: int = 2) -> AsyncIterator[Serving]:
    """A gateway whose children are all ready."""
    with serving(f"processes = {count}\n{toml}", *workers) as gateway:
        try:
            await all_ready(gateway)
            yield gateway
        finally:
            await asyncio.to_thread(gateway.end)  # workers in this loop have to answer meanwhile


async def ask_control(gateway: Serving, path: str, method: str = "GET") -> httpx.Response:
    """One request over the control socket."""
    transport = httpx.AsyncHTTPTransport(uds=str(gateway.folder / "control"))
    async with httpx.AsyncClient(transport=transport, base_url="http://control") as control:
        return await control.request(method, path)


async def status(gateway: Serving) -> Any:
    """Its status."""
    return (await ask_control(gateway, "/status.json")).json()


async def all_ready(gateway: Serving) -> None:
    """Wait until every child takes arrivals."""

    async def are_ready() -> bool:
        return {child["state"] for child in (await status(gateway))["children"]} == {"ready"}

    await eventually(are_ready, "all children are ready", within_s=START_S)


async def replaced(gateway: Serving, pid: int) -> None:
    """Wait until another process has taken the place of this child, and all are ready."""

    async def is_replaced() -> bool:
        return pid not in await pids(gateway)

    await eventually(is_replaced, f"child {pid} is replaced", within_s=START_S)
    await all_ready(gateway)


async def pids(gateway: Serving) -> list[int]:
    """The process ids of its children."""
    return [child["pid"] for child in (await status(gateway))["children"]]


async def counted(gateway: Serving, admitted: int, denied: int = 0) -> None:
    """Wait until its status tells of so many arrivals."""

    async def is_told() -> bool:
        gate = (await status(gateway))["gates"]["default"]
        told: tuple[int, int] = gate["admitted"], sum(gate["denied"].values())
        return told == (admitted, denied)

    await eventually(is_told, f"{admitted} were admitted and {denied} denied")


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A child that does nothing while the block runs."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def member_of(scope: Scope) -> bytes:
    """The child that a handshake came through, as its worker sees it."""
    name: bytes = dict(scope["headers"])[b"herdgate-gateway"]
    return name


async def gone(pid: int) -> None:
    """Wait until there is no such process."""

    async def is_gone() -> bool:
        return not _is_there(pid)

    await eventually(is_gone, f"process {pid} has ended", within_s=20)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
