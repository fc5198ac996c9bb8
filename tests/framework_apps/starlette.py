"""Starlette: `add_middleware`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from herdgate import AdmissionMiddleware, Gate
from herdgate.asgi import ASGIApp
from tests.framework_apps import HTTP_PATHS, TICK_S, WEBSOCKET_PATHS, make_gate

__all__ = ["make"]


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
    yield {"started": "yes"}


async def _page(request: Request) -> PlainTextResponse:
    return PlainTextResponse("page")


async def _started(request: Request) -> PlainTextResponse:
    return PlainTextResponse(request.state.started)


async def _events(request: Request) -> StreamingResponse:
    async def ticks() -> AsyncIterator[bytes]:
        while True:
            yield b"data: tick\n\n"
            await asyncio.sleep(TICK_S)

    return StreamingResponse(ticks(), media_type="text/event-stream")


async def _echo(websocket: WebSocket) -> None:
    await websocket.accept()
    async for text in websocket.iter_text():
        await websocket.send_text(text)


def make(limits: dict[str, Any], **settings: Any) -> tuple[ASGIApp, Gate]:
    """The app and its gate."""
    gate = make_gate(limits)
    routes = [Route("/", _page), Route("/started", _started), Route("/events", _events), WebSocketRoute("/ws", _echo)]
    app = Starlette(routes=routes, lifespan=_lifespan)
    app.add_middleware(
        AdmissionMiddleware, gate=gate, http_paths=HTTP_PATHS, websocket_paths=WEBSOCKET_PATHS, **settings
    )
    return app, gate
