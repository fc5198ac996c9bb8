"""HTTP/1.1 on bound sockets, in the running loop: uvicorn's protocol without uvicorn's server.

The server installs signal handlers, ticks ten times a second and logs its start and its end; all of that belongs to the
data port. What it would do besides fits in here. No access log either: probes and scrapes come for ever.
"""

import asyncio
import contextlib
import socket
from collections.abc import Sequence
from typing import Any

from h11 import LocalProtocolError
from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

__all__ = ["Listener"]

IDLE_S = 5
"""Seconds a connection may stay without a request."""

BACKLOG = 16
"""Connections that may wait. asyncio tries as many times to accept one when there are no descriptors left."""

CLOSE_S = 1.0
"""Seconds that requests under way have when the listener closes."""


TURNS = 5
"""Turns of the loop until a connection just accepted is with its protocol, or one just aborted is gone."""


class _Protocol(H11Protocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.access_log = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # uvicorn counts from the first answer; who never asks would keep a descriptor of the process for ever.
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)


class Listener:
    """One app on sockets that are bound already; closing it closes them.

    Args:
        app: any ASGI app for HTTP; it gets no lifespan.
        sockets: bound, of any family.
    """

    def __init__(self, app: ASGIApp, sockets: Sequence[socket.socket]) -> None:
        self._sockets = sockets
        self._state = ServerState()
        # Nothing here may set up logging: uvicorn's loggers are those of the data port too.
        self._config = Config(
            app,
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level=None,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=IDLE_S,
        )
        self._config.load()
        self._servers: list[asyncio.Server] = []

    async def open(self) -> None:
        """Accept connections from now on."""
        loop = asyncio.get_running_loop()
        for bound in self._sockets:
            self._servers.append(await loop.create_server(self._protocol, sock=bound, backlog=BACKLOG))

    async def close(self) -> None:
        """Stop listening, finish the requests under way within `CLOSE_S`, and close every connection."""
        # An asyncio.Server that closes leaves a connection it is just accepting open for ever: accept none first.
        for bound in self._sockets:
            asyncio.get_running_loop().remove_reader(bound)
        await _turn()
        for server in self._servers:
            server.close()
        for connection in list(self._state.connections):
            with contextlib.suppress(LocalProtocolError):  # it broke the protocol: aborted below
                connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(set(self._state.tasks), timeout=CLOSE_S)
        for connection in list(self._state.connections):
            connection.transport.abort()
        await _turn()

    def _protocol(self) -> asyncio.Protocol:
        return _Protocol(config=self._config, server_state=self._state, app_state={})


async def _turn() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)
