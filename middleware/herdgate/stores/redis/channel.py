"""A connection to one Redis server, with a reader of its own.

Rules:
- Replies belong to requests in the order these were sent. The reader alone reads, and no caller can stop it: a caller
  that is cancelled leaves its reply to be read and dropped, and never to the next one.
- An end of the connection is seen when it comes, not with the next request, and ends all requests that wait.
- What was not sent whole is not followed by anything: the connection ends.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from herdgate.stores.redis.driver import AbstractConnection, exceptions

__all__ = ["OPEN_S", "Channel", "Word"]

Word = str | bytes | int | float
"""One word of a command."""

OPEN_S = 1.0  # for connecting, TLS and authentication together


class Channel:
    """Requests and replies on one open connection.

    Args:
        connection: of redis-py, not yet open.

    Attributes:
        on_end: called once with the reason when the connection ends by itself.
    """

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._reader: asyncio.Task[None] | None = None
        self._ended: Exception | None = None
        self.on_end: Callable[[Exception], None] | None = None

    @classmethod
    async def open(cls, connection: AbstractConnection, within_s: float = OPEN_S) -> "Channel":
        """Connect and authenticate.

        Raises:
            redis.exceptions.RedisError, OSError: it is refused, or takes longer than `within_s` seconds (TimeoutError).
        """
        channel = cls(connection)
        try:
            async with asyncio.timeout(within_s):
                await connection.connect()  # type: ignore[no-untyped-call]
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        channel._reader = asyncio.create_task(channel._read())
        return channel

    async def request(self, *words: Word) -> Any:
        """Send one command, and wait for its reply however long it takes: bytes, int, None or a list of these.

        Raises:
            redis.exceptions.RedisError: the reply is an error, or the connection has ended.
        """
        if self._ended is not None:
            raise exceptions.ConnectionError(str(self._ended)) from self._ended
        reply = asyncio.get_running_loop().create_future()
        self._waiting.append(reply)
        try:
            await self._connection.send_command(*words)
        except (exceptions.RedisError, OSError) as error:
            self._end(error)
        return await reply

    async def ask(self, *words: Word, within_s: float = OPEN_S) -> Any:
        """As `request`, for at most `within_s` seconds.

        Raises:
            redis.exceptions.RedisError: as `request`.
            TimeoutError: no reply.
        """
        async with asyncio.timeout(within_s):  # before Python 3.12, wait_for() may swallow a cancellation
            return await self.request(*words)

    def close(self) -> None:
        """End the connection and all requests that wait. The socket is closed a turn of the loop later."""
        self.on_end = None
        self._end(exceptions.ConnectionError("the connection is closed"))

    async def aclose(self) -> None:
        """As `close`, and wait until the socket is closed."""
        self.close()
        if self._reader is not None:
            await asyncio.wait({self._reader})

    async def _read(self) -> None:
        try:
            while True:
                self._settle(await self._reply())
        except (exceptions.RedisError, OSError) as error:
            self._end(error)
        except (EOFError, ValueError) as error:
            self._end(exceptions.InvalidResponse(f"what it sent is no reply: {error}"))
        finally:
            await self._connection.disconnect(nowait=True)

    async def _reply(self) -> Any:
        """The next reply; an error reply is one, too."""
        try:
            return await self._connection.read_response(disconnect_on_error=False)
        except exceptions.ResponseError as error:
            return error

    def _settle(self, reply: Any) -> None:
        if not self._waiting:
            raise exceptions.InvalidResponse("a reply that nobody asked for")
        waiting = self._waiting.popleft()
        if waiting.cancelled():
            return
        if isinstance(reply, Exception):
            waiting.set_exception(reply)
        else:
            waiting.set_result(reply)

    def _end(self, error: Exception) -> None:
        if self._ended is not None:
            return
        self._ended = error
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(error)
        if self._reader is not None:
            self._reader.cancel()
        if self.on_end is not None:
            self.on_end(error)
