"""Follows the frames of one direction of a WebSocket by their headers (RFC 6455 section 5). Pure.

    passed = scanner.feed(chunk)     # so many leading bytes may pass
    rest = chunk[passed:]            # with `stopped` None: a header in two parts; offer it again before what comes

Most chunks are one short message, whole. Between messages, such a one changes nothing here, so it need not be fed:

    scanner.sizes[chunk[1]] == len(chunk) and scanner.starts[chunk[0]]

Rules:
- nothing of a frame passes before its whole header is read and found good, so what has passed ends at a boundary, or
  within a payload; a payload is counted, and neither unmasked nor copied;
- scanning stops in front of a close frame, which is the caller's to read, of a frame or message over its limit, and of
  a header that breaks the protocol; it stays there;
- control frames between the fragments of a message do not count towards it;
- lengths are those on the wire: of a compressed message, the compressed ones;
- reserved bits are left to the endpoints if they have agreed on an extension, but for those of control frames.
"""

from functools import cache
from typing import Final, Literal

__all__ = ["Scanner", "Stop"]

Stop = Literal["close", "too big", "breach"]

LONGEST_SHORT = LONGEST_CONTROL = 125
LONGEST = (1 << 63) - 1  # RFC 6455 section 5.2
UNLIMITED = 1 << 128

# What a first byte begins.
_BREACH, _WHOLE, _FIRST, _MIDDLE, _LAST, _CONTROL, _CLOSE = range(7)


def _kind(first: int, *, is_inside: bool, is_extended: bool) -> int:
    is_final, reserved, opcode = first & 0x80, first & 0x70, first & 0x0F
    if opcode in (8, 9, 10):
        if reserved or not is_final:
            return _BREACH
        return _CLOSE if opcode == 8 else _CONTROL
    if opcode > 2 or (reserved and not is_extended) or is_inside != (opcode == 0):
        return _BREACH
    if is_inside:
        return _LAST if is_final else _MIDDLE
    return _WHOLE if is_final else _FIRST


def _kinds(*, is_extended: bool) -> tuple[bytes, bytes]:
    """By first byte: outside a fragmented message, and inside."""
    outside, inside = (
        bytes(_kind(first, is_inside=is_inside, is_extended=is_extended) for first in range(256))
        for is_inside in (False, True)
    )
    return outside, inside


_PLAIN: Final = _kinds(is_extended=False)
_EXTENDED: Final = _kinds(is_extended=True)
_STARTS: Final = {kinds: tuple(kind == _WHOLE for kind in kinds) for kinds in (_PLAIN[0], _EXTENDED[0])}


@cache
def _sizes(mask: int, header: int, longest: int) -> tuple[int, ...]:
    """By second byte: how long a frame is in all. -1: more than is short, or masked in the wrong way."""
    payloads = (second ^ mask for second in range(256))
    return tuple(header + payload if payload <= longest else -1 for payload in payloads)


class Scanner:
    """One direction.

    Args:
        is_masked: whether its frames have to be, as a client's have.
        is_extended: whether an extension was agreed on.
        max_frame_bytes: the longest payload of a data frame.
        max_message_bytes: the longest message, the sum of its fragments.

    Attributes:
        sizes: by the second byte of a short message in one frame: bytes in all; -1: it is none.
        starts: by the first byte: whether it begins a message in one frame.
        stopped: why nothing more passes; None: it goes on.
    """

    __slots__ = (
        "_header",
        "_kinds",
        "_left",
        "_mask",
        "_max_frame",
        "_max_message",
        "_message",
        "_tables",
        "sizes",
        "starts",
        "stopped",
    )

    def __init__(self, *, is_masked: bool, is_extended: bool, max_frame_bytes: int, max_message_bytes: int) -> None:
        self._mask, self._header = (0x80, 6) if is_masked else (0, 2)
        self._tables = _EXTENDED if is_extended else _PLAIN
        self._kinds = self._tables[0]
        self._max_frame, self._max_message = max_frame_bytes, max_message_bytes
        self.sizes = _sizes(self._mask, self._header, min(LONGEST_SHORT, max_frame_bytes, max_message_bytes))
        self.starts = _STARTS[self._kinds]
        self._left = 0  # bytes to come of the frame that is passing
        self._message = 0  # bytes of the fragmented message so far
        self.stopped: Stop | None = None

    @property
    def at_boundary(self) -> bool:
        """True if what has passed ends with a frame: a control frame may follow."""
        return not self._left

    @property
    def between_messages(self) -> bool:
        """True if what has passed ends with a message, or a control frame outside one: a message may follow."""
        return not self._left and self._kinds is self._tables[0]

    def feed(self, data: bytes | memoryview) -> int:
        """How many leading bytes of it may pass. They count as passed."""
        size, left = len(data), self._left
        if left >= size:
            self._left = left - size
            return size
        return self._walk(data)

    def feed_frame(self, data: bytes | memoryview) -> int:
        """As `feed`, but no further than the end of the frame that they begin with, or begin in."""
        return self.feed(data[: self._left]) if self._left else self._walk(data, once=True)

    def lift_limits(self) -> None:
        """Go on after "too big", with no limits: for what is dropped, to find the close frame in it."""
        self._max_frame = self._max_message = UNLIMITED
        self.stopped = None

    def _walk(self, data: bytes | memoryview, *, once: bool = False) -> int:
        size, at = len(data), self._left
        while size - at >= 2:
            kind, length = self._kinds[data[at]], data[at + 1] ^ self._mask
            if kind == _BREACH or length > (LONGEST_CONTROL if kind >= _CONTROL else 127):
                return self._stop("breach", at)
            start = at + self._header
            if length > 125:
                more = 2 if length == 126 else 8
                if size - at < 2 + more:
                    break
                length = int.from_bytes(data[at + 2 : at + 2 + more], "big")
                if length > LONGEST:
                    return self._stop("breach", at)
                start += more
            if kind == _CLOSE:
                return self._stop("close", at)
            if kind != _CONTROL and not self._count(kind, length):
                return self._stop("too big", at)
            at = start + length
            if once:
                break
        self._left = at - size if at > size else 0
        return at if at < size else size

    def _count(self, kind: int, length: int) -> bool:
        """Add a data frame to its message; False: it is too long."""
        message = self._message + length
        if length > self._max_frame or message > self._max_message:
            return False
        if kind == _LAST:
            self._message, self._kinds = 0, self._tables[0]
        elif kind != _WHOLE:
            self._message, self._kinds = message, self._tables[1]
        return True

    def _stop(self, why: Stop, at: int) -> int:
        self._left, self.stopped = 0, why
        return at
