"""One handshake that shall be refused, and what it comes to.

Rules: it is done only if it was refused as it ought to be: 429 or 503 with `Retry-After`; or 101, then a close frame
with 1013 and a time to come back, which is answered, then the end of the connection; with a ticket, where one is due.
"""

import base64
import random
import socket
import time
from typing import Literal

from herdgate_loadtest.engine.answer import TRY_AGAIN_LATER, Denial, denial_of_close, denial_of_response
from herdgate_loadtest.engine.frames import Opcode, client_frame, parse_close, parse_frame
from herdgate_loadtest.engine.wire import Handshake, check_upgrade, parse_response
from herdgate_loadtest.errors import WireError

__all__ = ["ADMITTED", "DONE", "Manner", "Visit"]

Manner = Literal["http", "close"]
"""How a handshake is refused; a page's, with an Origin, by a close frame."""

DONE, ADMITTED = "done", "admitted"
"""What a visit comes to: refused as it ought to be, or let in."""

_READ_SIZE = 16 * 1024
_REFUSED = frozenset((429, 503))
_NORMAL = 1000


class Visit:
    """One visit.

    Args:
        sock: connecting.
        handshake: what is to be sent.
        manner: how it shall be refused.
        with_ticket: it is due a ticket.

    Attributes:
        sock: as given.
        began: monotonic seconds.
        unsent: what is left of the handshake; the owner sends it.
    """

    __slots__ = ("_key", "_manner", "_refusal", "_unread", "_with_ticket", "began", "sock", "unsent")

    def __init__(self, sock: socket.socket, handshake: Handshake, manner: Manner, *, with_ticket: bool) -> None:
        self._key = base64.b64encode(random.randbytes(16))
        self._manner, self._with_ticket = manner, with_ticket
        self._unread = b""
        self._refusal: str | None = None  # what it came to, once the connection has ended
        self.sock, self.began = sock, time.monotonic()
        self.unsent = handshake.build(0, self._key)

    def read(self) -> str | None:
        """Read what is there: `DONE`, `ADMITTED`, what else it came to, or None while it goes on.

        Raises:
            OSError: the connection is broken.
        """
        data = self.sock.recv(_READ_SIZE)
        self._unread += data
        if self._refusal is not None:
            return None if data else self._refusal
        try:
            if self._key:
                return self._read_answer(ended=not data)
            return self._read_frames(ended=not data)
        except WireError as error:
            return str(error)

    def _read_answer(self, *, ended: bool) -> str | None:
        response = parse_response(self._unread, ended=ended)
        if response is None:
            return None
        if response.status == 101:
            check_upgrade(response, self._key)
            if self._manner == "http":
                return ADMITTED
            self._key, self._unread = b"", response.rest
            return self._read_frames(ended=ended)
        denial = denial_of_response(response.status, response.headers, response.body)
        if self._manner == "close" or response.status not in _REFUSED:
            return f"answered {denial.label}"
        return self._judged(denial, has_delay="retry-after" in response.headers)

    def _read_frames(self, *, ended: bool) -> str | None:
        frame = parse_frame(self._unread)
        if frame is None:
            return "ended without a close frame" if ended else None
        if frame.opcode != Opcode.CLOSE:
            return f"a frame of opcode {frame.opcode}"
        code, reason = parse_close(frame.payload)
        self.sock.send(client_frame(Opcode.CLOSE, frame.payload[:2], random.randbytes(4)))
        if code == _NORMAL:
            return ADMITTED  # the worker closes so
        if code != TRY_AGAIN_LATER:
            return f"closed with {code}"
        denial = denial_of_close(code, reason)
        self._refusal = self._judged(denial, has_delay=denial.delay_s is not None)
        return self._refusal if ended else None

    def _judged(self, denial: Denial, *, has_delay: bool) -> str:
        if not has_delay or denial.delay_s is None:
            return "refused without a time to come back"
        if self._with_ticket and not denial.ticket:
            return "refused without a ticket"
        return DONE
