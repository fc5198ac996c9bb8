"""WebSocket frames, client side (RFC 6455 section 5).

Rules: sans-I/O; `parse_frame` is given all unread bytes and keeps no state. No extension is ever negotiated, so
reserved bits are an error; so is a masked frame from the server. A frame of more than 1 MiB is a `WireError`.
"""

from enum import IntEnum
from typing import NamedTuple

from herdgate_loadtest.errors import WireError

__all__ = ["MOST_PAYLOAD", "Frame", "Opcode", "client_frame", "close_payload", "parse_close", "parse_frame"]

MOST_PAYLOAD = 1024 * 1024
_MOST_CONTROL = 125
_NO_STATUS = 1005  # stands for a close frame without a code; never on the wire


class Opcode(IntEnum):
    """RFC 6455 section 11.8."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


class Frame(NamedTuple):
    """A whole frame from the server; `end` is where the next one begins."""

    opcode: int
    payload: bytes
    final: bool
    end: int


def parse_frame(data: bytes, at: int = 0) -> Frame | None:
    """Read the frame that begins at `at`; None: more bytes are needed.

    Raises:
        WireError: a server may not send this.
    """
    if len(data) < at + 2:
        return None
    first, second = data[at], data[at + 1]
    opcode, final, size, start = first & 0x0F, first >= 0x80, second & 0x7F, at + 2
    _check_header(first, second)
    if size > _MOST_CONTROL:
        wide = 2 if size == 126 else 8
        start += wide
        if len(data) < start:
            return None
        size = int.from_bytes(data[start - wide : start], "big")
    if size > MOST_PAYLOAD:
        raise WireError(f"a frame is larger than {MOST_PAYLOAD} bytes")
    end = start + size
    return Frame(opcode, data[start:end], final, end) if len(data) >= end else None


def _check_header(first: int, second: int) -> None:
    if first & 0x70:
        raise WireError("a frame has reserved bits set")
    if second & 0x80:
        raise WireError("the server masked a frame")
    if first & 0x08 and (first < 0x80 or second > _MOST_CONTROL):
        raise WireError("a control frame is fragmented or too long")


def client_frame(opcode: Opcode, payload: bytes, mask: bytes) -> bytes:
    """Build one whole masked frame. `mask` is 4 random bytes, new for every frame."""
    size = len(payload)
    if size <= _MOST_CONTROL:
        header = bytes((0x80 | opcode, 0x80 | size))
    elif size < 1 << 16:
        header = bytes((0x80 | opcode, 0x80 | 126)) + size.to_bytes(2, "big")
    else:
        header = bytes((0x80 | opcode, 0x80 | 127)) + size.to_bytes(8, "big")
    pad = (mask * (size // 4 + 1))[:size]  # one XOR of two long integers is far faster than a loop over bytes
    masked = (int.from_bytes(payload, "big") ^ int.from_bytes(pad, "big")).to_bytes(size, "big")
    return header + mask + masked


def close_payload(code: int, reason: str = "") -> bytes:
    """The payload of a close frame."""
    return code.to_bytes(2, "big") + reason.encode()


def parse_close(payload: bytes) -> tuple[int, str]:
    """Code and reason of a close frame; 1005 and "" if it carries none.

    Raises:
        WireError: half a code, or a reason that is not UTF-8.
    """
    if not payload:
        return _NO_STATUS, ""
    if len(payload) == 1:
        raise WireError("a close frame has half a code")
    try:
        return int.from_bytes(payload[:2], "big"), payload[2:].decode()
    except UnicodeDecodeError:
        raise WireError("the reason of a close frame is not UTF-8") from None
