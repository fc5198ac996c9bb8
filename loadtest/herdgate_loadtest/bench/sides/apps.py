"""What stock uvicorn serves beside the gateway: `python -m herdgate_loadtest.bench.sides.apps APP FD [WORKER]`.

refuse, close     the smallest ASGI app that refuses every handshake, by the denial extension or by accept + close 1013
naive-refuse, naive-close, naive-relay
                  as people write it: an endpoint of Starlette, and a client of `websockets` to the worker
"""

import asyncio
import contextlib
import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.websockets import WebSocket
    from websockets.asyncio.client import ClientConnection

    from herdgate.asgi import ASGIApp, Receive, Scope, Send

__all__ = ["main"]

_BODY = b'{"error": "full", "retry_ms": 5000}'
_REASON = '{"retry_ms":5000}'
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(_BODY)), (b"retry-after", b"5")]


async def refuse(scope: "Scope", receive: "Receive", send: "Send") -> None:
    """503 by the denial extension."""
    if scope["type"] == "http":
        await _answer_health(send)
        return
    await receive()
    await send({"type": "websocket.http.response.start", "status": 503, "headers": _HEADERS})
    await send({"type": "websocket.http.response.body", "body": _BODY})


async def close(scope: "Scope", receive: "Receive", send: "Send") -> None:
    """Accept, then close 1013."""
    if scope["type"] == "http":
        await _answer_health(send)
        return
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": 1013, "reason": _REASON})


async def _answer_health(send: "Send") -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]})
    await send({"type": "http.response.body", "body": b"ok\n"})


def naive(what: str, worker: str) -> "ASGIApp":
    """The app of Starlette. `what` is refuse, close or relay."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, PlainTextResponse
    from starlette.routing import Route, WebSocketRoute
    from starlette.websockets import WebSocket
    from websockets.asyncio.client import connect

    async def answer(websocket: WebSocket) -> None:
        refusal = JSONResponse({"error": "full", "retry_ms": 5000}, 503, {"retry-after": "5"})
        await websocket.send_denial_response(refusal)

    async def shut(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.close(1013, _REASON)

    async def relay(websocket: WebSocket) -> None:
        async with connect(f"{worker}{websocket.url.path}", max_size=None) as upstream:
            await websocket.accept()
            await _pass_on(websocket, upstream)

    async def health(request: Request) -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    endpoint = {"refuse": answer, "close": shut, "relay": relay}[what]
    return Starlette(routes=[Route("/healthz", health), WebSocketRoute("/{path:path}", endpoint)])


async def _pass_on(websocket: "WebSocket", upstream: "ClientConnection") -> None:
    async def down() -> None:
        async for message in upstream:
            await (websocket.send_text(message) if isinstance(message, str) else websocket.send_bytes(message))
        with contextlib.suppress(RuntimeError):  # the client has closed
            await websocket.close()

    downward = asyncio.create_task(down())
    try:
        while (event := await websocket.receive())["type"] == "websocket.receive":
            await upstream.send(event["bytes"] if event.get("bytes") is not None else event["text"])
    finally:
        downward.cancel()


def main() -> None:
    """Serve until told to stop."""
    import uvicorn  # by the process that serves only, and not by who starts it

    name, descriptor, *worker = sys.argv[1:]
    if name.startswith("naive-"):
        app = naive(name.removeprefix("naive-"), *worker)
    else:
        app = {"refuse": refuse, "close": close}[name]
    config = uvicorn.Config(
        app,
        ws="websockets-sansio",
        lifespan="off",
        access_log=False,
        log_level="critical",
        backlog=4096,
        timeout_graceful_shutdown=1,
    )
    with socket.socket(fileno=int(descriptor)) as listener:
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
