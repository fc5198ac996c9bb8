"""FastAPI: `add_middleware`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, WebSocket
from fastapi.responses import StreamingResponse

from herdgate import AdmissionMiddleware, Gate
from herdgate.asgi import ASGIApp
from tests.framework_apps import HTTP_PATHS, TICK_S, WEBSOCKET_PATHS, make_gate

__all__ = ["make"]


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
    yield {"started": "yes"}


def make(limits: dict[str, Any], **settings: Any) -> tuple[ASGIApp, Gate]:
    """The app and its gate."""
    gate = make_gate(limits)
    app = FastAPI(lifespan=_lifespan)
    app.add_middleware(
        AdmissionMiddleware, gate=gate, http_paths=HTTP_PATHS, websocket_paths=WEBSOCKET_PATHS, **settings
    )

    @app.get("/")
    async def page() -> str:
        return "page"

    @app.get("/started")
    async def started(request: Request) -> str:
        return str(request.state.started)

    @app.get("/events")
    async def events() -> StreamingResponse:
        async def ticks() -> AsyncIterator[bytes]:
            while True:
                yield b"data: tick\n\n"
                await asyncio.sleep(TICK_S)

        return StreamingResponse(ticks(), media_type="text/event-stream")

    @app.websocket("/ws")
    async def echo(websocket: WebSocket) -> None:
        await websocket.accept()
        async for text in websocket.iter_text():
            await websocket.send_text(text)

    return app, gate
