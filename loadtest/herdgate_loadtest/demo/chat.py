"""The chat room that the demo's crowd connects to.

The room keeps the moment of each admission; `/stats?since=` tells those from then on, for
`herdgate_loadtest.demo.rounds` to compare. Nothing else of the app knows that it is a demo.
"""

import time
from contextlib import suppress

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

__all__ = ["Room", "build"]


class Room:
    """Everybody who is connected, and when they came."""

    def __init__(self) -> None:
        self.members: set[WebSocket] = set()
        self.admitted_at: list[float] = []

    async def join(self, websocket: WebSocket) -> None:
        """One member's whole stay: what one says goes to all."""
        await websocket.accept()
        self.admitted_at.append(time.monotonic())
        self.members.add(websocket)
        with suppress(WebSocketDisconnect):
            try:
                async for text in websocket.iter_text():
                    await self._tell_all(text)
            finally:
                self.members.discard(websocket)

    async def _tell_all(self, text: str) -> None:
        for member in list(self.members):
            with suppress(WebSocketDisconnect, RuntimeError):  # one that is leaving
                await member.send_text(text)


def build() -> Starlette:
    """The chat app."""
    room = Room()

    async def stats(request: Request) -> JSONResponse:
        since = float(request.query_params["since"])
        return JSONResponse({"admitted_at": [moment for moment in room.admitted_at if moment >= since]})

    return Starlette(routes=[WebSocketRoute("/chat", room.join), Route("/stats", stats)])
