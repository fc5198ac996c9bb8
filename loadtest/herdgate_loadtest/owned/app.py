"""The app of the workers: it echoes, and tells what it has seen.

`GET /stats?since=` tells how many sockets are open, and those that came since then (monotonic seconds): moment, id,
shard and epoch.
"""

import time
from contextlib import suppress

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

__all__ = ["app"]


class _Seen:
    """Sockets of one worker."""

    def __init__(self) -> None:
        self._came: list[tuple[float, str, int, int]] = []
        self._open = 0

    async def echo(self, socket: WebSocket) -> None:
        """One socket's whole stay."""
        connection = socket.state.connection
        await socket.accept()
        self._came.append((time.monotonic(), connection.id, connection.shard, connection.epoch))
        self._open += 1
        try:
            with suppress(WebSocketDisconnect, OSError):
                async for text in socket.iter_text():
                    await socket.send_text(text)
        finally:
            self._open -= 1

    async def stats(self, request: Request) -> JSONResponse:
        """What it has seen."""
        since = float(request.query_params["since"])
        return JSONResponse({"open": self._open, "came": [came for came in self._came if came[0] >= since]})


_seen = _Seen()
app = Starlette(routes=[WebSocketRoute("/", _seen.echo), Route("/stats", _seen.stats)])
