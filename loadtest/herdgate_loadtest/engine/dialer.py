"""Opens client sockets: non-blocking, from several source addresses in turn.

Rules: never waits. `open` returns a socket that is still connecting, or raises the system's own error. A source port
is chosen at connect time where the system can do that (IP_BIND_ADDRESS_NO_PORT): chosen at bind time, one port serves
one connection only, whatever its destination, and the search gets slow when ports are scarce.
"""

import contextlib
import errno
import os
import socket
import struct
from typing import TYPE_CHECKING

from herdgate_loadtest.errors import PreflightError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from herdgate_loadtest.engine.target import Target

__all__ = ["OUR_FAULTS", "Dialer", "hang_up", "reset"]

OUR_FAULTS = frozenset(
    (errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.EADDRINUSE, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN)
)
"""What dialling fails with when this machine, not the server, has run out."""

_BIND_WITHOUT_PORT = getattr(socket, "IP_BIND_ADDRESS_NO_PORT", None)
_LINGER_ZERO = struct.pack("ii", 1, 0)


class Dialer:
    """Dials from `sources` in turn; without any, from wherever the system likes."""

    def __init__(self, sources: "Sequence[str]") -> None:
        self._sources = tuple(sources)

    def check(self, target: "Target") -> None:
        """Raise `PreflightError` unless every source is an address of this machine that can reach `target`'s family."""
        for source in self._sources:
            try:
                with socket.socket(target.family, socket.SOCK_STREAM) as sock:
                    self._bind(sock, source)
            except OSError as error:
                raise PreflightError(f"source {source}: {error.strerror}; use addresses of this machine") from None

    def open(self, target: "Target", number: int) -> socket.socket:
        """Begin to connect client `number` to `target`.

        Raises:
            OSError: no descriptor, no port, or refused at once.
        """
        sock = socket.socket(target.family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            if self._sources:
                self._bind(sock, self._sources[number % len(self._sources)])
            code = sock.connect_ex(target.address)
            if code not in {0, errno.EINPROGRESS}:
                raise OSError(code, os.strerror(code))
        except OSError:
            sock.close()
            raise
        return sock

    def _bind(self, sock: socket.socket, source: str) -> None:
        if _BIND_WITHOUT_PORT is not None:
            sock.setsockopt(socket.IPPROTO_IP, _BIND_WITHOUT_PORT, 1)
        sock.bind((source, 0))


def hang_up(sock: socket.socket, goodbye: bytes) -> None:
    """Send `goodbye`, if there is room for it, and close: what a tab that is closed does."""
    with contextlib.suppress(OSError):  # the peer is gone, or stuck: there is nothing to tell it
        sock.send(goodbye)
    sock.close()


def reset(sock: socket.socket) -> None:
    """Close with a RST: what a crash or a dropped network path looks like from the server."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
    sock.close()
