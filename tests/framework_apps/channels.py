"""Django Channels: around the whole `ProtocolTypeRouter`, so that plain requests can be guarded too."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import django  # type: ignore[import-untyped]
from channels.generic.websocket import AsyncWebsocketConsumer  # type: ignore[import-untyped]
from channels.routing import ProtocolTypeRouter, URLRouter  # type: ignore[import-untyped]
from django.conf import settings as django_settings  # type: ignore[import-untyped]
from django.core.asgi import get_asgi_application  # type: ignore[import-untyped]
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse  # type: ignore[import-untyped]
from django.urls import path  # type: ignore[import-untyped]

from herdgate import AdmissionMiddleware, Gate
from herdgate.asgi import ASGIApp
from tests.framework_apps import HTTP_PATHS, TICK_S, WEBSOCKET_PATHS, make_gate

__all__ = ["make"]

django_settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="a key for tests only")
django.setup()


async def _page(request: HttpRequest) -> HttpResponse:
    return HttpResponse("page")


async def _started(request: HttpRequest) -> HttpResponse:
    return HttpResponse("yes" if django.apps.apps.ready else "no")


async def _events(request: HttpRequest) -> StreamingHttpResponse:
    async def ticks() -> AsyncIterator[bytes]:
        while True:
            yield b"data: tick\n\n"
            await asyncio.sleep(TICK_S)

    return StreamingHttpResponse(ticks(), content_type="text/event-stream")


class _Echo(AsyncWebsocketConsumer):  # type: ignore[misc]
    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        await self.send(text_data=text_data)


urlpatterns = [path("", _page), path("started", _started), path("events", _events)]


def make(limits: dict[str, Any], **settings: Any) -> tuple[ASGIApp, Gate]:
    """The app and its gate."""
    gate = make_gate(limits)
    websockets = URLRouter([path("ws", _Echo.as_asgi())])
    router = ProtocolTypeRouter({"http": get_asgi_application(), "websocket": websockets})
    return AdmissionMiddleware(
        router, gate=gate, http_paths=HTTP_PATHS, websocket_paths=WEBSOCKET_PATHS, **settings
    ), gate
