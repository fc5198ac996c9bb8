"""A call and its reply as bytes: the number of parts, then each of them, with its length before it.

    call    name of the script, key, arguments ...
    reply   "list" or "bytes" and what it holds, or "error" and why

Lengths are 4 bytes, big-endian. A frame is bounded, as memory is.
"""

import asyncio
import struct
from collections.abc import Sequence

__all__ = ["MOST_BYTES", "pack_frame", "read_frame"]

MOST_BYTES = 16 << 20
"""Longest frame: 24 bytes for each of 699,050 arrivals."""

_LENGTH = struct.Struct(">I")


def pack_frame(parts: Sequence[bytes]) -> bytes:
    """The bytes of a frame.

    Raises:
        ValueError: it would be too long.
    """
    body = _LENGTH.pack(len(parts)) + b"".join(_LENGTH.pack(len(part)) + part for part in parts)
    if len(body) > MOST_BYTES:
        raise ValueError(f"a call of {len(body)} bytes, more than {MOST_BYTES}")
    return _LENGTH.pack(len(body)) + body


async def read_frame(reader: asyncio.StreamReader) -> list[bytes]:
    """The parts of the next frame.

    Raises:
        EOFError: the other side has ended, maybe within a frame (`asyncio.IncompleteReadError`).
        ValueError: it is no frame, or too long.
    """
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if length > MOST_BYTES:
        raise ValueError(f"a frame of {length} bytes, more than {MOST_BYTES}")
    return _parts(await reader.readexactly(length))


def _parts(body: bytes) -> list[bytes]:
    parts: list[bytes] = []
    try:
        (count,) = _LENGTH.unpack_from(body)
        end = _LENGTH.size
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(body, end)
            begin, end = end + _LENGTH.size, end + _LENGTH.size + length
            parts.append(body[begin:end])
    except struct.error:
        raise ValueError("a frame cut short") from None
    if end != len(body):
        raise ValueError("a frame whose parts are not as long as it says")
    return parts
