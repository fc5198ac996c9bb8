"""A worker of the benchmark: it reports its capacity to the fleet, and knows how many sockets it held, and when.

Run as `python -m herdgate_loadtest.bench.worker REDIS NAME CAPACITY FD`, it serves on the listening socket it was
handed. What it holds is counted in its app, not by what reports it. `/stats?since=` tells the most.
"""

import sys
import time
from contextlib import suppress

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from herdgate import LoadReport
from herdgate.fleet import Fleet
from herdgate_loadtest.bench.echo import FLEET
from herdgate_loadtest.bench.server import serve

__all__ = ["Sockets", "main"]


class Sockets:
    """The app's sockets: each from its handshake to its end."""

    def __init__(self) -> None:
        self._held = 0
        self._counts: list[tuple[float, int]] = []  # moment of each arrival, and how many were held with it

    async def stay(self, websocket: WebSocket) -> None:
        """One socket's whole stay."""
        self._held += 1
        self._counts.append((time.monotonic(), self._held))
        try:
            with suppress(WebSocketDisconnect):
                await websocket.accept()
                await websocket.receive_bytes()  # the crowd says nothing
        finally:
            self._held -= 1

    def most(self, since: float) -> int:
        """Held at the fullest since `since`, monotonic seconds; 0 if nobody has come since."""
        return max((held for moment, held in self._counts if moment >= since), default=0)


def build(sockets: Sockets) -> Starlette:
    """The app."""

    async def stats(request: Request) -> JSONResponse:
        return JSONResponse({"most": sockets.most(float(request.query_params["since"]))})

    return Starlette(routes=[WebSocketRoute("/echo", sockets.stay), Route("/stats", stats)])


def main() -> None:
    """Serve until told to stop."""
    redis, name, capacity, descriptor = sys.argv[1:]
    app = LoadReport(build(Sockets()), Fleet(redis, FLEET), name=name, capacity=int(capacity))
    serve(app, int(descriptor))


if __name__ == "__main__":
    main()
