"""The connection below a client's WebSocket, which ASGI has no words for: when it is gone, and how to make it go.

Our server offers one to the app as `scope["extensions"]["herdgate.line"]`.
"""

import asyncio
import math
from contextlib import suppress
from typing import Final

from herdgate.asgi import Scope

__all__ = ["EXTENSION", "ClientLine", "line_of"]

EXTENSION: Final = "herdgate.line"


class ClientLine:
    """One connection.

    Args:
        transport: below it.

    Attributes:
        heard_at: when something came last, a ping say; seconds of the loop's clock.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._lost = asyncio.Event()
        self.heard_at = -math.inf

    def lost(self) -> None:
        """To be called when the connection is gone."""
        self._lost.set()

    async def end(self, within_s: float) -> None:
        """Wait until the connection is gone, and cut it if it is still there after that many seconds.

        A server that closes a connection first waits until the client has read what was written; one that does not
        read would keep the socket for ever.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._lost.wait()
        self.cut()

    def cut(self) -> None:
        """Cut the connection, whatever is still to be written; harmless once it is gone."""
        self._transport.abort()


def line_of(scope: Scope) -> ClientLine | None:
    """The connection, where the server offers it."""
    line: ClientLine | None = (scope.get("extensions") or {}).get(EXTENSION)
    return line
