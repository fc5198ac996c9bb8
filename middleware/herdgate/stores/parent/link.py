"""The link of a child process to the parent that holds its calendar; it answers to the name of the link to Redis.

Rules, as there: one call at a time, in a task of its own; a call is missed only if the socket, read at the deadline,
holds no reply; a reply that comes later goes to `on_late`, and while one is due, calls fail at once. A connection that
has ended is made anew with the next call.
"""

import asyncio
from collections.abc import Callable, Sequence

from herdgate.stores.deadline import settled
from herdgate.stores.parent.errors import CallFailed, ParentDown, ParentTimeout
from herdgate.stores.parent.frames import pack_frame, read_frame
from herdgate.stores.redis.scripts import Script

__all__ = ["ParentLink"]

DEADLINE_S = 0.5
"""On one machine a parent that lives answers, however late; that it has died shows at once, by the connection's end."""


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ParentLink:
    """One connection to the parent; at most one call in flight.

    Args:
        path: its Unix socket.
        deadline_s: seconds a call may take.

    Attributes:
        where: for messages.
        calls: made so far.
        on_late: gets each reply that nobody waits for any more.
    """

    def __init__(self, path: str, *, deadline_s: float = DEADLINE_S) -> None:
        self._path = path
        self._deadline_s = deadline_s
        self._stream: Stream | None = None
        self._call: asyncio.Task[object] | None = None
        self._is_closed = False
        self.where = "the parent process"
        self.calls = 0
        self.on_late: Callable[[object], None] | None = None

    @property
    def is_up(self) -> bool:
        """True while a call would be sent: there is a connection, and no reply is due on it."""
        return self._stream is not None and self._call is None

    async def call(self, script: Script, keys: Sequence[str | bytes], args: Sequence[str | bytes]) -> object:
        """Have the parent do what a script does in Redis, and return its reply: bytes, or a list of bytes.

        Args:
            script: of which only the name is told.
            keys: one.
            args: as for the script.

        Raises:
            ParentTimeout: no reply within the deadline.
            ParentDown: there is no connection, or it has ended.
            CallFailed: the parent has refused the call.
            ValueError: the call is too long.
        """
        if self._call is not None:
            raise ParentDown("an earlier call is still without its reply")
        frame = pack_frame([part.encode() if isinstance(part, str) else part for part in (script.name, *keys, *args)])
        self._call = call = asyncio.create_task(self._exchange(frame))
        call.add_done_callback(self._ended)
        try:
            is_answered = await settled(call, self._deadline_s)
        except asyncio.CancelledError:
            call.add_done_callback(self._hand_over)
            raise
        if is_answered:
            return call.result()
        call.add_done_callback(self._hand_over)
        raise ParentTimeout(f"no reply within {self._deadline_s:g} s")

    async def check(self, key: str | bytes = "") -> None:
        """Connect.

        Raises:
            ParentDown: nobody is there.
        """
        await self._connect()

    async def aclose(self) -> None:
        """Close the connection, and make no other. A call in flight is given up."""
        self._is_closed = True
        if self._call is not None:
            self._call.cancel()
            await asyncio.wait({self._call})
        self._drop()

    async def _exchange(self, frame: bytes) -> object:
        reader, writer = await self._connect()
        self.calls += 1
        try:
            writer.write(frame)
            kind, *parts = await read_frame(reader)
        except (OSError, EOFError, ValueError) as error:
            self._drop()
            raise ParentDown(str(error) or "the connection has ended") from error
        except asyncio.CancelledError:
            self._drop()  # a reply that is half read, or to come, is no good to the next call
            raise
        if kind == b"error":
            raise CallFailed(parts[0].decode(errors="replace"))
        return parts if kind == b"list" else parts[0]

    async def _connect(self) -> Stream:
        if self._is_closed:
            raise ParentDown("the link is closed")
        if self._stream is not None and self._stream[1].is_closing():
            self._drop()
        if self._stream is None:
            try:
                self._stream = await asyncio.open_unix_connection(self._path)
            except OSError as error:
                raise ParentDown(error.strerror or str(error)) from error
        return self._stream

    def _drop(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream[1].close()

    def _ended(self, call: asyncio.Task[object]) -> None:
        self._call = None

    def _hand_over(self, call: asyncio.Task[object]) -> None:
        if not call.cancelled() and call.exception() is None and self.on_late is not None:
            self.on_late(call.result())
