"""What a client is denied with, as the bytes that go on the wire. Pure.

Rules:
- how an answer is framed is ours: whatever the given headers say of `Content-Length`, `Transfer-Encoding` and
  `Connection` is left out, and each answer ends its connection;
- a header with a CR, LF or NUL in it would be an answer of somebody else's making (RFC 9110 section 5.5): ValueError.
"""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha1
from http import HTTPStatus

__all__ = ["accept_key", "close_answer", "close_frame", "http_answer"]

Pair = tuple[bytes, bytes]

_LONGEST_REASON = 123  # a control frame holds 125 bytes, and two are the code (RFC 6455 section 5.5)
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 section 1.3
_FRAMING = frozenset((b"connection", b"content-length", b"transfer-encoding"))
_STATUS_LINES = {status.value: b"HTTP/1.1 %d %b" % (status, status.phrase.encode()) for status in HTTPStatus}
_SWITCHING = (
    b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: %b"
)


def http_answer(status: int, headers: Sequence[Pair], body: bytes) -> bytes:
    """A response, whole.

    Args:
        status: 200 to 599.
        headers: with names in lower case.
    """
    lines = [_STATUS_LINES.get(status) or b"HTTP/1.1 %d " % status]
    lines += [b"%b: %b" % pair for pair in headers if pair[0] not in _FRAMING]
    lines.append(b"content-length: %d\r\nconnection: close" % len(body))
    return _head(lines, 1) + body


def close_answer(key: bytes, subprotocol: str | None, headers: Sequence[Pair], code: int, reason: str) -> bytes:
    """A 101 with a close frame behind it.

    Args:
        key: the client's `Sec-WebSocket-Key`.
        subprotocol: the one to echo.
        headers: for the 101 too, with names in lower case.
        code: one that may be sent (RFC 6455 section 7.4).
        reason: 123 bytes at most, as UTF-8; ValueError for a longer one.
    """
    lines = [_SWITCHING % accept_key(key)]
    if subprotocol is not None:
        lines.append(b"sec-websocket-protocol: %b" % subprotocol.encode("ascii"))
    lines += [b"%b: %b" % pair for pair in headers if pair[0] not in _FRAMING]
    return _head(lines, 3) + close_frame(code, reason)


def accept_key(key: bytes) -> bytes:
    """What `Sec-WebSocket-Accept` answers to a key (RFC 6455 section 4.2.2)."""
    return b64encode(sha1(key + _GUID, usedforsecurity=False).digest())


def close_frame(code: int, reason: str) -> bytes:
    """A close frame as servers send it; ValueError for a reason of more than 123 bytes."""
    why = reason.encode()
    if len(why) > _LONGEST_REASON:
        raise ValueError(f"a close frame holds {_LONGEST_REASON} bytes of reason, not {len(why)}")
    return b"\x88%c%b%b" % (2 + len(why), code.to_bytes(2), why)


def _head(lines: list[bytes], more: int) -> bytes:
    """These lines, of which some hold so many line ends of their own, and the blank one."""
    head = b"\r\n".join(lines) + b"\r\n\r\n"
    ends = len(lines) + more + 1
    if head.count(b"\n") != ends or head.count(b"\r") != ends or b"\0" in head:
        raise ValueError("a header holds a CR, LF or NUL")
    return head
