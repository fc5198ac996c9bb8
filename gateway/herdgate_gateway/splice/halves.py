"""One leg of a splice: what arrives here leaves at the far leg, frame headers followed, bytes as they are.

Of each leg two things are known:

    said    nothing more is passed on from it: it has said goodbye, or is gone
    told    nothing more is written to it: it has got a close frame, passed on or ours, or the connection is being ended

Rules:
- what is ours stands at a boundary only: a close frame between two frames, a message between two messages;
- a close frame is passed on once it is whole, and only if it may be sent; nothing after it is;
- a leg is read while the far one takes what is read, or while what is read is dropped;
- a leg that is told and not heard from is read on, for its close frame;
- what is written to a leg goes straight to its descriptor while its transport has nothing left to write, as the way
  through that is longer; the rest, and every error, is the transport's. Never over TLS, nor before `start`.
"""

import asyncio
from os import write as write_now
from typing import TYPE_CHECKING

from herdgate_gateway.splice.frames import close_size, is_sound_close
from herdgate_gateway.splice.scanner import Scanner

if TYPE_CHECKING:
    from herdgate_gateway.splice.joint import Joint

__all__ = ["Half"]


class Half(asyncio.Protocol):
    """The protocol of one leg.

    Args:
        joint: what holds both.
        transport: of this leg.
        scanner: of what arrives here.

    Attributes:
        far: the other leg; to be set before anything arrives.
        eof: nothing more will arrive.
        gone: the connection is gone.
        has_moved: bytes have come; to be reset by whoever asks.
        paused_at: since when it does not take what is written, in the loop's seconds; None: it does.
    """

    __slots__ = (
        "_close",
        "_descriptor",
        "_held",
        "_is_broken",
        "_is_clear",
        "_is_quick",
        "_is_slow",
        "_sizes",
        "_starts",
        "_texts",
        "eof",
        "far",
        "gone",
        "has_moved",
        "joint",
        "paused_at",
        "said",
        "scanner",
        "told",
        "transport",
    )

    far: "Half"

    def __init__(self, joint: "Joint", transport: asyncio.Transport, scanner: Scanner) -> None:
        self.joint, self.transport, self.scanner = joint, transport, scanner
        self._held = b""  # a header in two parts, or a close frame that is not whole
        self._close = self._texts = b""  # frames of ours that wait for their place
        self._sizes, self._starts = scanner.sizes, scanner.starts
        self._is_quick = True  # a short message that comes whole may pass as it is
        self._is_clear = False  # there is a descriptor, and nothing that the transport has left to write
        self._descriptor = -1
        self._is_slow = self._is_broken = self.said = self.told = self.eof = self.gone = self.has_moved = False
        self.paused_at: float | None = None

    # What the event loop calls.

    def data_received(self, data: bytes) -> None:
        """Bytes from this leg."""
        size = len(data)
        if self._is_quick and size > 1 and self._sizes[data[1]] == size and self._starts[data[0]]:
            self.has_moved = True
            self.far.write(data)
        else:
            self._read(data)

    def eof_received(self) -> bool:
        """This leg sends no more; it may still read. Over TLS that does not exist, and the connection ends."""
        self.eof = True
        if not self.said:
            self._vanish()
        elif self.far.told:
            self.far.end_writing()
        self.joint.settle()
        return self.transport.can_write_eof()

    def connection_lost(self, error: Exception | None) -> None:
        """This leg is gone."""
        self.gone = self.eof = self.told = True
        if not self.said:
            self._vanish()
        self.far.follow_slowly()
        self.joint.lost()

    def pause_writing(self) -> None:
        """This leg does not take what it is sent."""
        self.paused_at = self.joint.now()
        self.joint.watch()
        self.far.regulate()

    def resume_writing(self) -> None:
        """It does again."""
        self.paused_at = None
        self.far.regulate()

    # What the joint calls.

    def start(self) -> None:
        """Be the protocol of the transport. It must not be lost: its descriptor may be somebody else's by now."""
        self.transport.set_protocol(self)
        if self.transport.can_write_eof():
            self._descriptor = self.transport.get_extra_info("socket").fileno()

    def write(self, data: bytes | memoryview) -> None:
        """Send this; what is not taken now is the transport's to send."""
        if self._is_clear:
            try:
                sent = write_now(self._descriptor, data)
            except OSError:  # the transport meets one too, and does what has to be done
                sent = 0
            if sent == len(data):
                return
            data = memoryview(data)[sent:]
        self.transport.write(data)
        self._is_clear = self._descriptor >= 0 and not self.transport.get_write_buffer_size()

    def say(self, message: bytes) -> None:
        """Write a message of ours, in one frame, at the next place between two."""
        if not self.told and not self._close:
            self._texts += message
            self._put_in()
            self.far.follow_slowly()

    def tell(self, close: bytes) -> None:
        """Write a close frame of ours at the next boundary, unless one is written or waits."""
        if not self.told and not self._close:
            self._close = close
            self._put_in()
            self.far.follow_slowly()

    def end(self) -> None:
        """End the connection once what is written is taken."""
        self.told = True
        self.transport.close()
        self.far.follow_slowly()

    def end_writing(self) -> None:
        """Send no more. Where that cannot be told, over TLS, its own goodbye is waited for."""
        if self.transport.can_write_eof() and not self.transport.is_closing():
            self.transport.write_eof()

    def follow_slowly(self) -> None:
        """From now on bytes of this leg need a closer look."""
        self._is_slow, self._is_quick = True, False
        self.regulate()

    def regulate(self) -> None:
        """Read from this leg, or not."""
        if self.eof or self.transport.is_closing():
            return
        if self.far.paused_at is None or self.far.told:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    # Behind them.

    @property
    def _waits(self) -> bool:
        return bool(self._close or self._texts) and not self.told

    def _read(self, data: bytes) -> None:
        passed = 0 if self._is_slow else self.scanner.feed(data)
        if passed == len(data):
            self.has_moved = True
            self.far.write(data)
        else:
            self._follow(data, passed)
        self._is_quick = self.scanner.between_messages and not self._is_slow

    def _follow(self, data: bytes, passed: int) -> None:
        """Pass on what may pass, and see what it is that may not."""
        if self.said or self._is_broken:
            return
        self.has_moved = True
        if self._is_slow:
            data = self._held + data
            passed = self._splice(memoryview(data))
        else:
            self._forward(memoryview(data)[:passed])
        self._held = data[passed:]
        if self.scanner.stopped == "close":
            self._read_close()
        elif self.scanner.stopped == "too big":
            self._exceed()
        elif self.scanner.stopped == "breach":
            self._break()
        self._is_slow = bool(self._held) or self.said or self.far.told or self.far._waits

    def _splice(self, view: memoryview) -> int:
        """Pass on what may pass, with what waits for a place in it; how much that is."""
        passed = 0
        while self.far._waits and (frame := self.scanner.feed_frame(view[passed:])):
            self._forward(view[passed : passed + frame])
            passed += frame
            self.far._put_in()
        if self.far._waits:
            return passed
        rest = self.scanner.feed(view[passed:])
        self._forward(view[passed : passed + rest])
        return passed + rest

    def _forward(self, view: memoryview) -> None:
        if view and not self.far.told:
            self.far.write(view)

    def _put_in(self) -> None:
        """Write what waits, if this is the place."""
        scanner = self.far.scanner
        if self._texts and scanner.between_messages and not self.told:
            self.write(self._texts)
            self._texts = b""
        if self._close and scanner.at_boundary and not self.told:
            self._write_close(self._close)

    def _write_close(self, close: bytes) -> None:
        self.write(close)
        self._close = self._texts = b""
        self.told = True
        self.far.follow_slowly()
        if self._is_broken:
            self._end_unheard()

    def _end_unheard(self) -> None:
        """End a leg of which nothing can be understood any more.

        Closed at once, it would be reset if bytes are left unread, and the close frame lost.
        """
        if self.transport.can_write_eof():
            self.end_writing()
        else:
            self.transport.close()

    def _read_close(self) -> None:
        size = close_size(self._held)
        if len(self._held) < size:
            return
        close, self._held = self._held[:size], b""
        if not is_sound_close(close):
            self._break()
            return
        self.said = True
        if not self.far.told and not self.joint.takes(self, close):
            self.far._write_close(close)
        self.joint.hurry()
        self.joint.settle()

    def _break(self) -> None:
        """This leg has broken the protocol: nothing it sends can be understood any more."""
        self._is_broken, self._held = True, b""
        if self.told:
            self._end_unheard()
        self.joint.broken(self, "breach")

    def _exceed(self) -> None:
        """This leg has broken a limit: what it sends is dropped from here on, up to its close frame."""
        held, self._held = self._held, b""
        self.joint.broken(self, "too big")
        self.scanner.lift_limits()
        self._is_slow = True
        self._follow(held, 0)

    def _vanish(self) -> None:
        """This leg sends no more, and has not said goodbye."""
        self.said = True
        if self.far.told:
            return
        if self.scanner.at_boundary:
            self.joint.vanished(self)
        else:
            self.far.end()
        self.joint.hurry()
