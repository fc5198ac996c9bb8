"""Quart: around `asgi_app`, so that `app` stays the Quart app."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from quart import Quart, Response, websocket

from herdgate import AdmissionMiddleware, Gate
from herdgate.asgi import ASGIApp
from tests.framework_apps import HTTP_PATHS, TICK_S, WEBSOCKET_PATHS, make_gate

__all__ = ["make"]


def make(limits: dict[str, Any], **settings: Any) -> tuple[ASGIApp, Gate]:
    """The app and its gate."""
    gate = make_gate(limits)
    app = Quart(__name__)
    settings |= {"gate": gate, "http_paths": HTTP_PATHS, "websocket_paths": WEBSOCKET_PATHS}
    app.asgi_app = AdmissionMiddleware(app.asgi_app, **settings)  # type: ignore[method-assign, arg-type, assignment]

    @app.before_serving
    async def start() -> None:
        app.config["STARTED"] = "yes"

    @app.get("/")
    async def page() -> str:
        return "page"

    @app.get("/started")
    async def started() -> str:
        return str(app.config["STARTED"])

    @app.get("/events")
    async def events() -> Response:
        async def ticks() -> AsyncIterator[bytes]:
            while True:
                yield b"data: tick\n\n"
                await asyncio.sleep(TICK_S)

        response = Response(ticks(), mimetype="text/event-stream")
        response.timeout = None  # a stream that never ends
        return response

    @app.websocket("/ws")
    async def echo() -> None:
        while True:
            await websocket.send(await websocket.receive())

    return app, gate  # type: ignore[return-value]
