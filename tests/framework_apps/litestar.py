"""Litestar: around the app, or as its own middleware, which runs once a route was found and is made for each."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from litestar import Litestar, Request, get, websocket_listener
from litestar.middleware import DefineMiddleware
from litestar.response import ServerSentEvent

from herdgate import AdmissionMiddleware, Gate
from herdgate.asgi import ASGIApp
from tests.framework_apps import HTTP_PATHS, TICK_S, WEBSOCKET_PATHS, make_gate

__all__ = ["make", "make_inside"]


def _start(app: Litestar) -> None:
    app.state.started = "yes"


@get("/")
async def _page() -> str:
    return "page"


@get("/started")
async def _started(request: Request[Any, Any, Any]) -> str:
    return str(request.app.state.started)


@get("/events")
async def _events() -> ServerSentEvent:
    async def ticks() -> AsyncIterator[str]:
        while True:
            yield "tick"
            await asyncio.sleep(TICK_S)

    return ServerSentEvent(ticks())


@websocket_listener("/ws")
async def _echo(data: str) -> str:
    return data


ROUTES = [_page, _started, _events, _echo]


def make(limits: dict[str, Any], **settings: Any) -> tuple[ASGIApp, Gate]:
    """The app and its gate."""
    gate = make_gate(limits)
    app = Litestar(ROUTES, on_startup=[_start])
    return AdmissionMiddleware(app, gate=gate, http_paths=HTTP_PATHS, websocket_paths=WEBSOCKET_PATHS, **settings), gate  # type: ignore[arg-type]


def make_inside(limits: dict[str, Any], **settings: Any) -> tuple[ASGIApp, Gate]:
    """The same, guarded from inside; the gate has to be made beforehand, or every route would have its own."""
    gate = make_gate(limits)
    settings |= {"gate": gate, "http_paths": HTTP_PATHS, "websocket_paths": WEBSOCKET_PATHS}
    guard = DefineMiddleware(AdmissionMiddleware, **settings)  # type: ignore[arg-type]
    return Litestar(ROUTES, on_startup=[_start], middleware=[guard]), gate  # type: ignore[return-value]
