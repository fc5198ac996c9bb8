"""A descriptor kept for the moment when there are no others: then it makes room to accept one more, and to say so.

Without it a full process cannot accept, so the connection stays in the backlog, and its loop is woken for it for ever.
"""

import os
import socket
from contextlib import suppress

from herdgate_gateway.front_door.answers import http_answer

__all__ = ["SpareDescriptor"]

_FULL = http_answer(503, [(b"retry-after", b"5"), (b"content-type", b"text/plain")], b"no room for one more socket\n")


class SpareDescriptor:
    """Holds one."""

    def __init__(self) -> None:
        self._fd: int | None = os.open(os.devnull, os.O_RDONLY)

    def turn_away(self, listener: socket.socket) -> bool:
        """Accept one connection, tell it that there is no room, and close it; False if none is waiting."""
        if self._fd is None:
            self._keep()  # another thread was quicker the last time
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
        try:
            accepted, _ = listener.accept()
        except OSError:
            self._keep()
            return False
        with accepted, suppress(OSError):
            accepted.recv(65_536, socket.MSG_DONTWAIT)
            accepted.send(_FULL, socket.MSG_DONTWAIT)
        self._keep()
        return True

    def close(self) -> None:
        """Let it go."""
        if self._fd is not None:
            os.close(self._fd)

    def _keep(self) -> None:
        with suppress(OSError):
            self._fd = os.open(os.devnull, os.O_RDONLY)
