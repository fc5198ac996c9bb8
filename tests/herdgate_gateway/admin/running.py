"""A gateway as the admin server sees it: gates in a main loop of their own thread, and the server in front of them.

with main_loop({"default": Limits(rate=5)}) as view, admin(view) as server:
    httpx.get(f"{server.url}/healthz")
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from herdgate import Gate, Limits
from herdgate_gateway.admin import AdminServer, AdminSettings, Status, hand_over

__all__ = ["Controlled", "Still", "Worker", "admin", "ask", "main_loop"]

PUBLISH_S = 0.02


@dataclass(frozen=True)
class Worker:
    """A worker of the pool, as its snapshot."""

    url: str
    open: int = 0
    pending: int = 0
    state: str = "up"
    failures: int = 0


class Still:
    """A gateway whose status stays what it is, for what only reads it."""

    def __init__(self, status: Status, *, ready: bool = True) -> None:
        self.current = status
        self.ready = ready

    def status(self) -> Status:
        return self.current

    def is_ready(self) -> bool:
        return self.ready

    async def set_rate(self, rate: float | None) -> None:
        raise AssertionError("nobody changes what stands still")

    async def set_fraction(self, fraction: float) -> None:
        raise AssertionError("nobody changes what stands still")

    async def drain(self, within_s: float | None) -> None:
        raise AssertionError("nobody changes what stands still")


class Controlled(Still):
    """A gateway with a main loop: it publishes all the time, and takes changes in that loop."""

    def __init__(self, limits: Mapping[str, Limits]) -> None:
        self.loop = asyncio.new_event_loop()
        self.gates = {route: Gate(limit, route=route) for route, limit in limits.items()}
        self.started_at = time.time()
        self.workers = [Worker("ws://127.0.0.1:9001", open=2), Worker("ws://127.0.0.1:9002", state="broken")]
        super().__init__(self._take())

    async def run(self) -> None:
        while True:
            self.current = self._take()
            await asyncio.sleep(PUBLISH_S)

    async def set_rate(self, rate: float | None) -> None:
        for gate in self.gates.values():
            await hand_over(self.loop, partial(gate.set_rate, rate))

    async def set_fraction(self, fraction: float) -> None:
        for gate in self.gates.values():
            await hand_over(self.loop, partial(gate.set_admit_fraction, fraction))

    def block(self, work: Callable[[], object]) -> None:
        """Have the main loop do this, and nothing else meanwhile."""
        self.loop.call_soon_threadsafe(work)

    def close_gates(self) -> None:
        self.ready = False
        for gate in self.gates.values():
            self.block(gate.drain)

    def _take(self) -> Status:
        gates = {route: gate.snapshot() for route, gate in self.gates.items()}
        return Status(gates, self.workers, self.started_at, "0.0.1")


@contextmanager
def main_loop(limits: Mapping[str, Limits] | None = None) -> Iterator[Controlled]:
    """Run a main loop while the block runs."""
    view = Controlled(limits or {"default": Limits(rate=5)})
    task = view.loop.create_task(view.run())
    thread = threading.Thread(target=view.loop.run_forever)
    thread.start()
    try:
        yield view
    finally:
        task.add_done_callback(lambda _: view.loop.stop())
        view.loop.call_soon_threadsafe(task.cancel)
        thread.join(10)
        view.loop.close()


@contextmanager
def admin(view: Still, **settings: Any) -> Iterator[AdminServer]:
    """Run an admin server while the block runs, on a free port unless told otherwise."""
    server = AdminServer(view, replace(AdminSettings(listen="127.0.0.1:0"), **settings))
    server.start()
    try:
        yield server
    finally:
        server.stop()


def ask(address: AdminServer | Path, path: str, method: str = "GET", **options: Any) -> httpx.Response:
    """One request over TCP, or over a control socket."""
    if isinstance(address, Path):
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(address)), base_url="http://localhost") as http:
            return http.request(method, path, **options)
    return httpx.request(method, f"{address.url}{path}", **options)
