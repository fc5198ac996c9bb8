"""Frames of our own between those of others: a close, and a text message (RFC 6455 sections 5.2 and 5.5.1). Pure.

To a client frames go as they are, to a worker masked, with a key nobody can guess (section 5.3).
"""

import os

from websockets.exceptions import ProtocolError
from websockets.frames import Close

from herdgate_gateway.close_codes import fit_reason

__all__ = ["close_frame", "close_size", "close_words", "is_sound_close", "text_frame"]


def close_frame(code: int | None, reason: str = "", *, is_masked: bool) -> bytes:
    """A close frame; without a code it is empty.

    Args:
        code: one that may be sent.
        reason: cut to 123 bytes, between characters.
    """
    payload = b"" if code is None else code.to_bytes(2, "big") + fit_reason(reason).encode()
    if not is_masked:
        return bytes((0x88, len(payload))) + payload
    key = os.urandom(4)
    return bytes((0x88, 0x80 | len(payload))) + key + _masked(payload, key)


def text_frame(text: str) -> bytes:
    """A text message to a client, in one frame. What has no UTF-8 in it becomes "?"."""
    payload = text.encode("utf-8", "replace")
    size = len(payload)
    if size < 126:
        return bytes((0x81, size)) + payload
    if size < 65_536:
        return b"\x81\x7e" + size.to_bytes(2, "big") + payload
    return b"\x81\x7f" + size.to_bytes(8, "big") + payload


def close_size(data: bytes) -> int:
    """Bytes of the close frame that begins here, by its header of at least 2 bytes."""
    return 2 + (data[1] & 0x7F) + (4 if data[1] & 0x80 else 0)


def is_sound_close(frame: bytes) -> bool:
    """True if it may be passed on: no code, or one that may be sent with a reason that is UTF-8."""
    payload = _masked(frame[6:], frame[2:6]) if frame[1] & 0x80 else frame[2:]
    try:
        Close.parse(payload)
    except (ProtocolError, UnicodeDecodeError):
        return False
    return True


def close_words(frame: bytes) -> tuple[int, str]:
    """Code and reason of a sound close frame that is not masked; 1005 stands for none."""
    close = Close.parse(frame[2:])
    return close.code, close.reason


def _masked(payload: bytes, key: bytes) -> bytes:
    return bytes(byte ^ key[place % 4] for place, byte in enumerate(payload))
