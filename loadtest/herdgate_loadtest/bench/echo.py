"""A gateway of the benchmark: an echo app behind the middleware, in a process of its own.

Run as `python -m herdgate_loadtest.bench.echo SETTINGS FD`, it serves on the listening socket it was handed. A plain
ASGI app, so that what is measured is the middleware. `/stats?since=` tells what it and its gate have counted.
"""

import asyncio
import json
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import parse_qs

from herdgate import AdmissionMiddleware, Decision, Gate, Limits
from herdgate.asgi import Receive, Scope, Send
from herdgate.fleet import Fleet
from herdgate_loadtest.bench.samples import Sample
from herdgate_loadtest.bench.server import serve

__all__ = ["FLEET", "Settings", "main"]

FLEET = "bench"
"""What the benchmark's fleet is called."""

_SAMPLE_S = 0.1


@dataclass(frozen=True, slots=True)
class Settings:
    """What the gateway admits.

    Attributes:
        rate: admissions per second of the whole fleet.
        redis: URL of the fleet's Redis; None: a calendar of its own.
        burst: admissions at once; None: the default one.
        max_wait_s: how long a handshake is held for its firm slot.
    """

    rate: float
    redis: str | None
    burst: float | None = None
    max_wait_s: float = 0.5


class Echo:
    """The app.

    Attributes:
        gate: in front of it.
        admitted_at: moment of each admission, monotonic seconds.
        samples: of decisions and calls, ten a second.
    """

    def __init__(self) -> None:
        self.gate: Gate | None = None
        self.admitted_at: list[float] = []
        self.samples: list[Sample] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._echo(receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._tell(float(parse_qs(scope["query_string"])[b"since"][0]), send)

    async def _echo(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "bytes": message.get("bytes"), "text": message.get("text")})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        sampling = asyncio.create_task(self._sample())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        sampling.cancel()
        with suppress(asyncio.CancelledError):
            await sampling
        await send({"type": "lifespan.shutdown.complete"})

    async def _sample(self) -> None:
        while True:
            now = self._counts()
            decisions = now["admitted"] + now["denied"]
            self.samples.append(Sample(time.monotonic(), decisions, now["calls"], not now["is_up"]))
            await asyncio.sleep(_SAMPLE_S)

    def note(self, decision: Decision) -> None:
        """Keep the moment of an admission."""
        if decision.outcome == "admitted":
            self.admitted_at.append(time.monotonic())

    def _counts(self) -> dict[str, Any]:
        assert self.gate is not None
        now = self.gate.snapshot()
        fleet = asdict(now.fleet) if now.fleet else {}
        return {
            "admitted": now.admitted,
            "denied": sum(now.denied.values()),
            "permits": now.pending + now.open,
            "calls": fleet.get("calls", 0),
            "is_up": fleet.get("is_up", True),
            "gateways": fleet.get("gateways", 1),
        }

    async def _tell(self, since: float, send: Send) -> None:
        told = {
            **self._counts(),
            "admitted_at": [moment for moment in self.admitted_at if moment >= since],
            "samples": [sample for sample in self.samples if sample.at >= since],
        }
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(told).encode()})


def build(settings: Settings) -> AdmissionMiddleware:
    """The guarded app."""
    echo = Echo()
    fleet = Fleet(settings.redis, FLEET) if settings.redis else None
    limits = Limits(rate=settings.rate, burst=settings.burst)
    app = AdmissionMiddleware(echo, limits, store=fleet, max_wait_s=settings.max_wait_s, on_decision=echo.note)
    echo.gate = app.gate
    return app


def main() -> None:
    """Serve until told to stop."""
    serve(build(Settings(**json.loads(sys.argv[1]))), int(sys.argv[2]))


if __name__ == "__main__":
    main()
