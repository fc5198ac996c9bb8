"""What a refusal says: when to come back, with which ticket.

Rules: pure; believes no field. A delay that is not a finite number in [0, 1 day], or a ticket that could not be sent
back as a header, counts as absent. The most precise source wins: `Herdgate-Retry-Ms`, then the JSON `retry_ms`, then
`Retry-After` in seconds (its date form needs a wall clock and is ignored).
"""

import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NO_ANSWER", "TRY_AGAIN_LATER", "Denial", "denial_of_close", "denial_of_response"]

TRY_AGAIN_LATER = 1013
"""The close code of a denial after the 101 (IANA registry; not in RFC 6455)."""

_LONGEST_DELAY_S = 86_400.0
_LONGEST_TICKET = 512
_LONGEST_REASON = 32


class Denial(NamedTuple):
    """An answer to "may I come in?" that was not yes.

    Attributes:
        delay_s: seconds to wait, as told; None: not told.
        ticket: to be shown on return; None: none was given.
        status: HTTP status or close code; 0: there was no answer at all.
        reason: herdgate's word for it (`rate`, `full`, ...); "" where the server gave none.
    """

    delay_s: float | None = None
    ticket: str | None = None
    status: int = 0
    reason: str = ""

    @property
    def label(self) -> str:
        """A short name to count by: `429 rate`, `close 1013`."""
        if 1000 <= self.status < 5000:
            return f"close {self.status}"
        return f"{self.status} {self.reason}".rstrip()


NO_ANSWER = Denial()


def denial_of_response(status: int, headers: "Mapping[str, str]", body: bytes) -> Denial:
    """Read an HTTP refusal. `headers` has lower-case names."""
    said = _object(body)
    delays = (
        _seconds(headers.get("herdgate-retry-ms"), 1e-3),
        _seconds(said.get("retry_ms"), 1e-3),
        _seconds(headers.get("retry-after"), 1.0),
    )
    delay_s = next((delay for delay in delays if delay is not None), None)
    ticket = _ticket(headers.get("herdgate-ticket")) or _ticket(said.get("ticket"))
    return Denial(delay_s, ticket, status, _word(said.get("reason")))


def denial_of_close(code: int, reason: str) -> Denial:
    """Read a close frame: 1013 refuses, 1012 drains; both may carry `{"retry_ms": ..., "ticket": ...}`."""
    said = _object(reason.encode())
    return Denial(_seconds(said.get("retry_ms"), 1e-3), _ticket(said.get("ticket")), code, _word(said.get("reason")))


def _object(text: bytes) -> dict[str, Any]:
    if not text.startswith(b"{"):  # spares most foreign bodies the parser
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _seconds(value: object, unit_s: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        seconds = float(value) * unit_s
    except (ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and 0 <= seconds <= _LONGEST_DELAY_S else None


def _ticket(value: object) -> str | None:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_TICKET:
        return None
    return value if value.isascii() and value.isprintable() and " " not in value else None


def _word(value: object) -> str:
    """The reason, if it is a word: it becomes a label in counts, so it must not be just anything."""
    return value if isinstance(value, str) and len(value) <= _LONGEST_REASON and value.isidentifier() else ""
