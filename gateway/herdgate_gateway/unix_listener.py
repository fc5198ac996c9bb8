"""A Unix socket that takes its file away when it is closed.

While it is still answered: a moment later the path may be that of the next process, which finds nobody there then.
"""

import os
import socket
from contextlib import suppress

__all__ = ["UnixListener"]


class UnixListener(socket.socket):
    """A stream socket that has no file until it is bound."""

    _file: tuple[str, int, int] | None = None

    def bind(self, address: str, /) -> None:  # type: ignore[override]
        """Make the file of this path."""
        super().bind(address)
        self._file = (address, *_identity(address))

    def close(self) -> None:
        """Remove the file, if it is still this one's, and close; harmless to repeat."""
        file, self._file = self._file, None
        if file is not None:
            path, *identity = file
            with suppress(OSError):
                if [*_identity(path)] == identity:
                    os.unlink(path)  # noqa: PTH108, as the path was given
        super().close()


def _identity(path: str) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino
