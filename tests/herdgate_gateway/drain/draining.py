"""Gateways that drain, and what their clients are told."""

import asyncio
import json
import re
import time
from dataclasses import dataclass
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.herdgate_gateway.serving import Serving
from tests.wire import open_socket

__all__ = ["Ended", "ask", "ends", "newcomers", "over", "steps"]

_STEP = re.compile(r"drain, ([0-9.]+) s, ([0-9]+) sockets open: (.*)")


@dataclass(frozen=True)
class Ended:
    """How a client's socket was closed.

    Attributes:
        messages: that came before.
        at: when, monotonic seconds.
    """

    code: int | None
    reason: str
    messages: list[str | bytes]
    at: float

    @property
    def told(self) -> Any:
        """The reason, read as JSON."""
        return json.loads(self.reason)


async def newcomers(gateway: Serving, count: int, path: str = "/ws") -> list[ClientConnection]:
    """So many open sockets, the oldest first; they come when told, as a calendar that is new has no tokens yet."""
    return [await _admitted(gateway, path) for _ in range(count)]


async def _admitted(gateway: Serving, path: str) -> ClientConnection:
    shown: list[tuple[str, str]] = []
    while True:
        try:
            return await open_socket(gateway.port, path, headers=shown)
        except InvalidStatus as error:
            told = json.loads(error.response.body or b"")
            shown = [("Herdgate-Ticket", told["ticket"])]
            await asyncio.sleep(told["retry_ms"] / 1_000)


async def ends(clients: list[ClientConnection], within_s: float = 20.0) -> list[Ended]:
    """How each of them ends."""
    async with asyncio.timeout(within_s):
        return list(await asyncio.gather(*map(_end, clients)))


async def _end(client: ClientConnection) -> Ended:
    messages: list[str | bytes] = []
    try:
        while True:
            messages.append(await client.recv())
    except ConnectionClosed as closed:
        frame = closed.rcvd
        return Ended(frame.code if frame else None, frame.reason if frame else "", messages, time.monotonic())


async def over(gateway: Serving, within_s: float = 20.0) -> int:
    """Its exit code, once it has ended by itself."""
    return await asyncio.to_thread(gateway.process.wait, within_s)


async def ask(gateway: Serving, path: str, method: str = "GET", **form: str) -> httpx.Response:
    """One request over the control socket."""
    transport = httpx.AsyncHTTPTransport(uds=str(gateway.folder / "control"))
    async with httpx.AsyncClient(transport=transport, base_url="http://control") as control:
        return await control.request(method, path, data=form or None)


def steps(gateway: Serving) -> list[tuple[float, int, str]]:
    """What its log says of its drain: seconds, open sockets, what."""
    return [(float(since_s), int(count), what) for since_s, count, what in _STEP.findall(gateway.log())]
