"""Sending a refusal over ASGI, so that it reaches the client whole and the server's log stays quiet."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress

from herdgate.asgi import Receive, Scope, Send
from herdgate.denial import TRY_AGAIN_LATER, Headers
from herdgate.logs import refusing

__all__ = [
    "close_websocket",
    "let_go",
    "offers_close_denial",
    "offers_http_denial",
    "refuse_http",
    "refuse_websocket",
    "reject_websocket",
]

LINGER_S = 1.0
"""How long a refused handshake may take to leave; uvicorn calls a shorter one an unfinished handshake, at ERROR."""

_DISCONNECTS = 2  # one for the response that has been sent, one for the connection that is gone
_MOST_EVENTS = 8  # read in all: a channel that answers at once, for ever, leaves the loop no turn to end the wait


def offers_http_denial(scope: Scope) -> bool:
    """True if the server can answer a handshake with an HTTP response (ASGI extension `websocket.http.response`)."""
    return "websocket.http.response" in (scope.get("extensions") or {})


def offers_close_denial(scope: Scope) -> bool:
    """True if a close takes its reason along (ASGI WebSocket specification 2.3).

    daphne speaks 2.0: it drops the reason, and fails on any code but 1000 and 3000 to 4999.
    """
    version = str((scope.get("asgi") or {}).get("spec_version", "2.0"))
    return offers_http_denial(scope) or version not in ("2.0", "2.1", "2.2")


async def refuse_websocket(receive: Receive, send: Send, status: int, headers: Headers, body: bytes) -> None:
    """Answer a handshake with an HTTP response, then wait, a bounded time, until the server has let go of it."""
    await _say(send({"type": "websocket.http.response.start", "status": status, "headers": headers}))
    await _say(send({"type": "websocket.http.response.body", "body": body}))
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S):
            await _await_disconnects(receive)


async def _await_disconnects(receive: Receive) -> None:
    left = _DISCONNECTS
    for _ in range(_MOST_EVENTS):
        left -= (await receive())["type"] == "websocket.disconnect"
        if not left:
            return


async def reject_websocket(send: Send) -> None:
    """All that can be said on a server without either denial: it answers 403, and nothing with it."""
    await _say(send({"type": "websocket.close", "code": TRY_AGAIN_LATER}))


async def let_go(send: Send) -> None:
    """Settle a handshake whose client has left; a server may call one that was never answered an error."""
    with suppress(OSError):
        await reject_websocket(send)


async def close_websocket(send: Send, subprotocol: str | None, headers: Headers, reason: str) -> None:
    """Accept, then close 1013: the only way a page can read why.

    Args:
        subprotocol: the first one offered; without one echoed, a browser that offered any reports 1006 and no reason.
    """
    await _say(send({"type": "websocket.accept", "subprotocol": subprotocol, "headers": headers}))
    await _say(send({"type": "websocket.close", "code": TRY_AGAIN_LATER, "reason": reason}))


async def refuse_http(send: Send, status: int, headers: Headers, body: bytes) -> None:
    """Answer a plain request."""
    await _say(send({"type": "http.response.start", "status": status, "headers": headers}))
    await _say(send({"type": "http.response.body", "body": body}))


async def _say(sending: Awaitable[None]) -> None:
    with refusing():
        await sending
