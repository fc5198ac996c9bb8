"""One handshake after another to one URL, with the arguments of `websockets.connect`.

Rules: every try begins at the URL as given, whatever a redirect made of it last time. What is wrong with the URL or an
argument is said when a `Dialer` is made. A socket is never left open: `leave` ends it even if it is cancelled.
"""

import asyncio
import re
from inspect import signature
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as websockets_connect
from websockets.datastructures import Headers
from websockets.exceptions import InvalidURI, NegotiationError
from websockets.uri import parse_uri

from herdgate_client.errors import ConfigurationError

__all__ = ["Dialer", "leave"]

_OURS = {
    "process_exception": "what is final is decided here",
    "reconnect_delays": "write base_s and cap_s",
    "sock": "one socket serves one try; write host and port",
}

_PROXY = "proxy_"  # before the name of an argument: for the connection to the proxy
_KNOWN = {
    name
    for taken in (
        websockets_connect,  # whatever else it gets it hands on to one of these:
        asyncio.BaseEventLoop.create_connection,
        asyncio.AbstractEventLoop.create_unix_connection,
    )
    for name in signature(taken).parameters
} - {"self", "uri", "protocol_factory", "kwargs"} | {"unix"}


class Dialer:
    """Opens sockets.

    Attributes:
        where: the URL without query and password, for people.

    Raises:
        ConfigurationError: the URL is none of a WebSocket, or an argument makes no sense for more than one try.
        TypeError, ValueError: as `websockets.connect`.
    """

    def __init__(self, url: str, arguments: dict[str, Any]) -> None:
        for name, given in arguments.items():
            if name in _OURS:
                raise ConfigurationError(name, given, _OURS[name])
            if name.removeprefix(_PROXY) not in _KNOWN:
                raise ConfigurationError(name, given, "there is no such argument, here or of websockets.connect")
        self.where = _check(url)
        self._url = url
        self._arguments = arguments
        self._headers = arguments.get("additional_headers")
        websockets_connect(url, **arguments)  # says now what is wrong with them

    async def dial(self, shown: dict[str, str]) -> ClientConnection:
        """Open a socket.

        Args:
            shown: headers in place of those of the same name.

        Raises:
            OSError: no connection, or a timeout.
            WebSocketException: no agreement; `NegotiationError` where no subprotocol of those offered was chosen, which
                browsers do not take either.
        """
        headers = Headers(self._headers or {})
        for name, value in shown.items():
            if name in headers:
                del headers[name]
            headers[name] = value
        ws = await websockets_connect(self._url, **{**self._arguments, "additional_headers": headers})
        if self._arguments.get("subprotocols") and ws.subprotocol is None:
            await leave(ws)
            raise NegotiationError("the server chose no subprotocol of those offered")
        return ws


async def leave(ws: ClientConnection) -> None:
    """Close a socket in good order, or at once if that is cancelled."""
    try:
        await ws.close()
    finally:
        ws.transport.abort()


def _check(url: str) -> str:
    try:
        if not isinstance(url, str) or not url.isprintable() or " " in url:
            raise ValueError("a request line cannot carry it")
        parse_uri(url)
        parts = urlsplit(url)
        if parts.port == 0:
            raise ValueError("nobody listens at port 0")
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        return urlunsplit((parts.scheme, f"{host}:{parts.port}" if parts.port else host, parts.path, "", ""))
    except (InvalidURI, ValueError):
        shown = _without_secrets(url) if isinstance(url, str) else type(url)
        # Without the cause, which shows all of the URL.
        raise ConfigurationError("url", shown, "write a WebSocket URL, as in wss://chat.example/ws") from None


def _without_secrets(url: str) -> str:
    """What may be shown of what is no URL: nothing before the last @ but its scheme, and no query."""
    return re.sub(r"\?.*", "?***", re.sub(r"^(\w+://)?.*@", r"\1***@", url, flags=re.DOTALL), flags=re.DOTALL)
