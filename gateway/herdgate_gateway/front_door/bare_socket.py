"""Sockets as the system gives them: `socket.socket` without what Python puts around it, a tenth of a refusal's cost.

What is needed of one that is about to be refused is all there: `recv`, `send`, `close`.
"""

import _socket
import socket
from typing import Any

__all__ = ["LAST", "BareSocket", "accept", "clothed"]

BareSocket = _socket.socket
"""What `socket.socket` is made of."""

LAST = socket.MSG_DONTWAIT | getattr(socket, "MSG_MORE", 0)
"""To send the last bytes with: they leave with the end behind them, in one packet where the system can (send(2))."""


def accept(listener: socket.socket) -> tuple[BareSocket, Any]:
    """The next connection and its address. It blocks, unless told not to with every call.

    Raises:
        BlockingIOError: none is waiting.
        OSError: it is gone, or there is no room for one more.
    """
    descriptor, address = listener._accept()  # type: ignore[attr-defined]
    return BareSocket(listener.family, listener.type, listener.proto, descriptor), address


def clothed(bare: BareSocket) -> socket.socket:
    """The same connection, for an event loop."""
    sock = socket.socket(bare.family, bare.type, bare.proto, bare.detach())
    sock.setblocking(False)
    return sock
