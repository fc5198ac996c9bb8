"""A server that gives its answers by heart, and time that passes when somebody waits for it.

    async with giving(refusal(503), OPEN) as server:
        retries = Retries()
        await sockets_of(server.url, retries)

Rules: real sockets. Answer number n is for connection number n; the last one is for all that follow.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection

from herdgate_client import connect
from tests.herdgate_gateway.gateways import ScriptedWorker, Visitor, frame, scripted_worker
from tests.wire import WAIT_S

__all__ = ["CUT", "OPEN", "SILENCE", "Enough", "Retries", "Time", "closing", "giving", "refusal", "sockets_of"]

CUT = b""
"""Hang up without an answer."""

OPEN = b"open"
"""Accept, and stay until the client closes."""

SILENCE = b"silence"
"""Never answer."""


class Time:
    """A clock, and the sleep that goes with it: whoever sleeps has slept.

    Attributes:
        now: seconds.
    """

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Let them pass; a moment less, as a timer may be early."""
        self.now += max(seconds - 0.001, 0.0005)
        await asyncio.sleep(0)


class Enough(Exception):  # noqa: N818 - no error
    """Enough retries."""


class Retries:
    """What `on_retry` was told.

    Args:
        most: raise `Enough` at this one.

    Attributes:
        delays: seconds.
        whys: lines.
    """

    def __init__(self, most: int = 1_000) -> None:
        self.delays: list[float] = []
        self.whys: list[str] = []
        self._most = most

    def __call__(self, delay_s: float, why: str) -> None:
        """Note it."""
        self.delays.append(delay_s)
        self.whys.append(why)
        if len(self.delays) == self._most:
            raise Enough


def refusal(status: int, *headers: str, body: bytes = b"") -> bytes:
    """An HTTP answer."""
    lines = [f"HTTP/1.1 {status} So", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def closing(code: int, reason: str = "") -> bytes:
    """Accept, and close at once."""
    return b"close" + frame(8, code.to_bytes(2, "big") + reason.encode())


@asynccontextmanager
async def giving(*answers: bytes, headers: tuple[str, ...] = ()) -> AsyncIterator[ScriptedWorker]:
    """A server that gives these answers, one a connection.

    Args:
        headers: of each 101.
    """
    left = list(answers)

    async def give(visitor: Visitor) -> None:
        answer = left.pop(0) if len(left) > 1 else left[0]
        await visitor.read_head()
        if answer == OPEN or answer.startswith(b"close"):
            await visitor.accept(*headers, then=b"" if answer == OPEN else answer.removeprefix(b"close"))
            await visitor.reader.read(1_000)  # the client's close frame, first or second
            if answer == OPEN:
                await visitor.send(frame(8, (1000).to_bytes(2, "big")))
        elif answer == SILENCE:
            await visitor.reader.read()
        else:
            await visitor.send(answer)

    async with scripted_worker(give) as server:
        yield server


async def sockets_of(
    url: str, retries: Retries, count: int = 1, *, lasting_s: float = 0, time: Time | None = None, **settings: Any
) -> list[ClientConnection]:
    """The first sockets that open, each but the last until the server closes it.

    Args:
        lasting_s: how long each of them seems to last.
    """
    time = time or Time()
    settings = {"rng": random.Random(1), "clock": time, "sleep": time.sleep, "proxy": None, **settings}
    found: list[ClientConnection] = []
    async with asyncio.timeout(WAIT_S), connect(url, on_retry=retries, **settings) as sockets:
        async for ws in sockets:
            found.append(ws)
            if len(found) == count:
                break
            await ws.wait_closed()
            time.now += lasting_s
    return found
