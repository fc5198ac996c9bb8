"""What ties a child to its parent: a pair of connected sockets, one JSON object a line, both ways.

Whoever reads the end of it knows that the other has ended, however it died.
"""

import asyncio
import json
import socket
from collections.abc import Mapping
from typing import Any, Self

__all__ = ["Lifeline"]

MOST_BYTES = 16 << 20
"""Longest line."""


class Lifeline:
    """One end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def over(cls, connected: socket.socket) -> Self:
        """The end that is this socket, which belongs to it from now on."""
        return cls(*await asyncio.open_unix_connection(sock=connected, limit=MOST_BYTES))

    @property
    def is_behind(self) -> bool:
        """True while the other has not read all that it was told."""
        return self._writer.transport.get_write_buffer_size() > 0

    def tell(self, message: Mapping[str, Any]) -> None:
        """Tell it something; without effect where the other has ended."""
        if not self._writer.is_closing():  # uvloop raises then
            self._writer.write(json.dumps(message).encode() + b"\n")

    async def hear(self) -> dict[str, Any] | None:
        """What the other tells next; None: it has ended.

        Raises:
            ValueError: it tells what is no JSON, or too much.
        """
        try:
            line = await self._reader.readline()
        except OSError:
            return None
        if not line.endswith(b"\n"):
            return None
        message: dict[str, Any] = json.loads(line)
        return message

    async def aclose(self) -> None:
        """Say what is still to be said, and close this end."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            return
