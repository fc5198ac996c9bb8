"""Readiness of many sockets behind a single descriptor of the event loop.

A selector of our own (epoll, kqueue) is itself readable when one of its sockets is ready, so the loop watches that one
descriptor. Against `loop.add_reader` per socket this saves a handle, a callback and a context per client, costs the
same on asyncio and uvloop, and lets us bound how many sockets are served before timers get their turn.

Rules: level-triggered; a callback may come for a socket that is not ready (any more), so callers must tolerate
`BlockingIOError`. At most `_SLICE` callbacks per turn of the loop.
"""

import contextlib
import selectors
from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    import socket

__all__ = ["Poller", "Ready"]

_SLICE = 128  # about 10 ms of work


class Ready(Protocol):
    """Someone who owns a socket."""

    def on_ready(self) -> None:
        """The socket can be read, or written where that was asked for."""


class Poller:
    """Calls `on_ready` of whoever owns a ready socket."""

    def __init__(self, loop: "asyncio.AbstractEventLoop") -> None:
        self._loop = loop
        self._selector = selectors.DefaultSelector()
        self._left: deque[Ready] = deque()
        loop.add_reader(self._selector.fileno(), self._serve)

    def watch(self, sock: "socket.socket", owner: Ready) -> None:
        """Begin to watch `sock` for reading."""
        self._selector.register(sock, selectors.EVENT_READ, owner)

    def set_writing(self, sock: "socket.socket", owner: Ready, *, writing: bool) -> None:
        """Watch `sock` for writing too, or no longer."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if writing else 0)
        self._selector.modify(sock, events, owner)

    def forget(self, sock: "socket.socket") -> None:
        """Stop to watch `sock`, before it is closed; one that is not watched is fine."""
        with contextlib.suppress(KeyError):
            self._selector.unregister(sock)

    def close(self) -> None:
        """Leave the event loop."""
        self._loop.remove_reader(self._selector.fileno())
        self._selector.close()
        self._left.clear()

    def _serve(self) -> None:
        left = self._left
        if not left:
            left.extend(key.data for key, _ in self._selector.select(0))
        for _ in range(min(_SLICE, len(left))):
            left.popleft().on_ready()
