"""The receive channel of one arrival while its verdict is awaited: sees the client leave, and loses no message.

Whatever is read before the verdict is replayed to the app, in order; a read still pending is handed over rather than
cancelled, as not every server can undo one.
"""

import asyncio
from collections import deque

from herdgate.asgi import Message, Receive

__all__ = ["Inbox"]

_LEFT = ("websocket.disconnect", "http.disconnect")
_MOST_READ_AHEAD = 2  # messages: the connect event or the first of a body, and one more
_TURNS = 4  # of the loop, from a FIN behind the request to its event: 3 for uvicorn, on asyncio and on uvloop


class Inbox:
    """Reads ahead of the app.

    Args:
        receive: the server's channel.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read: deque[Message] = deque()
        self._pending: asyncio.Future[Message] | None = None

    async def read_connect(self) -> None:
        """Read the first event of a WebSocket; the server has it ready."""
        self._read.append(await self._receive())

    async def has_left(self) -> bool:
        """True if the client is already gone: gives the loop the turns it takes to notice what has arrived."""
        for _ in range(_TURNS):
            if self._collect():
                return True
            self._read_ahead()
            await asyncio.sleep(0)
        return self._collect()

    async def wait_left(self, seconds: float) -> bool:
        """Wait that long, or until the client leaves: True if it did."""
        deadline = asyncio.get_running_loop().time() + seconds
        while not self._collect():
            pending = self._read_ahead()
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return False
            if pending is None:
                await asyncio.sleep(left)
            else:
                await asyncio.wait((pending,), timeout=left)
        return True

    async def receive(self) -> Message:
        """The channel for the app. Cancelling it loses no message, and two that wait get one each."""
        self._collect()
        while not self._read and self._pending is not None:
            await asyncio.wait((self._pending,))
            self._collect()
        return self._read.popleft() if self._read else await self._receive()

    def close(self) -> None:
        """Drop a read nobody waits for any more."""
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None

    def _read_ahead(self) -> asyncio.Future[Message] | None:
        if self._pending is None and len(self._read) < _MOST_READ_AHEAD:
            self._pending = asyncio.ensure_future(self._receive())
        return self._pending

    def _collect(self) -> bool:
        """Take what the pending read brought; True if the client has left."""
        if self._pending is not None and self._pending.done():
            pending, self._pending = self._pending, None
            self._read.append(pending.result())
        return bool(self._read) and self._read[-1]["type"] in _LEFT
