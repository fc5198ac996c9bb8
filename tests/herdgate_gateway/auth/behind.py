"""An app behind an authentication wrapper, called without a server: what gets through, and how the rest is refused."""

import asyncio
from typing import Any

from herdgate import Refused
from herdgate.asgi import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Behind", "scope_of"]


def scope_of(
    *, headers: list[tuple[bytes, bytes]] | None = None, query: str = "", kind: str = "websocket", **others: Any
) -> dict[str, Any]:
    """The scope of a request."""
    scope = {"type": kind, "path": "/chat", "raw_path": b"/chat", "query_string": query.encode("latin-1")}
    return {**scope, "scheme": "wss", "headers": headers or [], "client": ("192.0.2.7", 1), **others}


class Behind:
    """Remembers the scopes that got through.

    Attributes:
        scopes: of the calls so far.
    """

    def __init__(self) -> None:
        self.scopes: list[Scope] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)

    async def ask(self, guarded: ASGIApp, scope: Scope) -> int | str:
        """200 if `guarded` let it through; else the status, or the reason where none was given."""
        before = len(self.scopes)
        try:
            await guarded(scope, _receive, _send)
        except Refused as refused:
            assert len(self.scopes) == before
            return refused.status or refused.reason
        assert len(self.scopes) == before + 1
        return 200


async def _receive() -> Message:
    """The client waits for its answer."""
    never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    return await never


async def _send(message: Message) -> None:
    raise AssertionError("answered the client")
