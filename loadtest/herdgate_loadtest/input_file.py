"""A file that is read: opened, and what is in a small one that a person wrote.

Rules: nothing waits for a writer that is not there, and nothing large is read to its end.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from herdgate_loadtest.errors import UnreadableError

__all__ = ["decoded", "opened", "read_file", "read_standard_input"]

_MOST_BYTES = 1 << 20


@contextmanager
def opened(file: str) -> Iterator[BinaryIO]:
    """A file to read from; a FIFO that nobody writes to is empty.

    Raises:
        UnreadableError: it cannot be opened, or read to where the block wants it.
    """
    try:
        stream = open(Path(file), "rb", opener=_open_at_once)  # noqa: SIM115 - closed below
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        raise _unreadable(error) from None
    with stream:
        try:
            yield stream
        except OSError as error:
            raise _unreadable(error) from None


def read_file(file: str) -> bytes:
    """The bytes of a file.

    Raises:
        UnreadableError: it cannot be opened, or is larger than 1 MiB.
    """
    with opened(file) as stream:
        return _bounded(stream)


def read_standard_input() -> bytes:
    """The bytes of standard input.

    Raises:
        UnreadableError: it is closed, or larger than 1 MiB.
    """
    if sys.stdin is None:
        raise UnreadableError(["is closed"])
    return _bounded(sys.stdin.buffer)


def decoded(content: bytes) -> str:
    """The text of a file in UTF-8, without a byte order mark.

    Raises:
        UnreadableError: it is another encoding.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError([f"is not UTF-8, from byte {error.start:,} on; save it as UTF-8"]) from None


def _unreadable(error: Exception) -> UnreadableError:
    return UnreadableError([f"cannot be read: {getattr(error, 'strerror', None) or error}"])


def _open_at_once(file: str, flags: int) -> int:
    """Opening a FIFO that nobody writes to would wait for somebody; read, it is only empty."""
    if not hasattr(os, "O_NONBLOCK"):  # Windows, where no FIFO is a file
        return os.open(file, flags)
    descriptor = os.open(file, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor


def _bounded(stream: BinaryIO) -> bytes:
    content = stream.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise UnreadableError(["is larger than 1 MiB; name the right file"])
    return content
