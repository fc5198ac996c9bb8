"""The middleware in frameworks, as their users add it; factories for `tests.servers.uvicorn`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi import WebSocket as FastAPIWebSocket
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket, WebSocketDisconnect

from herdgate import AdmissionMiddleware, Gate, Limits
from herdgate.asgi import ASGIApp

__all__ = ["fastapi_with_gate", "fastapi_with_limits", "mounted", "starlette_app", "starlette_with_middleware"]


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
    yield {"started": "yes"}


async def _started(request: Request) -> PlainTextResponse:
    return PlainTextResponse(request.state.started)


async def _healthz(request: Request) -> PlainTextResponse:
    return PlainTextResponse("ok")


async def _events(request: Request) -> StreamingResponse:
    async def ticks() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"data: tick\n\n"

    return StreamingResponse(ticks(), media_type="text/event-stream")


async def _echo(websocket: WebSocket) -> None:
    await websocket.accept()
    try:
        async for text in websocket.iter_text():
            await websocket.send_text(text)
    except WebSocketDisconnect:
        return


def _routes() -> list[Any]:
    return [
        Route("/", _healthz),
        Route("/healthz", _healthz),
        Route("/started", _started),
        Route("/events", _events),
        Mount("/static", StaticFiles(packages=[("tests", ".")])),
        WebSocketRoute("/ws", _echo),
    ]


def starlette_app(**limits: Any) -> ASGIApp:
    """`add_middleware` with limits."""
    app = Starlette(routes=_routes(), lifespan=_lifespan)
    app.add_middleware(AdmissionMiddleware, limits=Limits(**limits), http_paths=["/events"])
    return app


def starlette_with_middleware(**limits: Any) -> ASGIApp:
    """A list of middleware, with a gate."""
    gate = Gate(Limits(**limits))
    return Starlette(routes=_routes(), lifespan=_lifespan, middleware=[Middleware(AdmissionMiddleware, gate=gate)])


def fastapi_with_limits(**limits: Any) -> ASGIApp:
    """FastAPI, `add_middleware` with limits."""
    app = FastAPI()
    app.add_middleware(AdmissionMiddleware, limits=Limits(**limits))

    @app.websocket("/ws")
    async def echo(websocket: FastAPIWebSocket) -> None:
        await _echo(websocket)

    return app


def fastapi_with_gate(**limits: Any) -> ASGIApp:
    """FastAPI, with a gate that a route reads and changes."""
    gate = Gate(Limits(**limits))
    app = FastAPI()
    app.add_middleware(AdmissionMiddleware, gate=gate)

    @app.websocket("/ws")
    async def echo(websocket: FastAPIWebSocket) -> None:
        await _echo(websocket)

    @app.post("/rate/{rate}")
    async def set_rate(rate: float) -> dict[str, int]:
        gate.set_rate(rate)
        return {"admitted": gate.snapshot().admitted}

    return app


def mounted(**limits: Any) -> ASGIApp:
    """A guarded app below `/{tenant}`, beside a page that is not guarded."""
    guarded = AdmissionMiddleware(Starlette(routes=_routes()), Limits(**limits), websocket_paths=["/ws"])
    return Starlette(routes=[Route("/healthz", _healthz), Mount("/{tenant}", guarded)], lifespan=_lifespan)
