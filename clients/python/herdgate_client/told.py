"""What a server says about coming back: a delay, a ticket.

Rules: pure; believes no field. A delay that is not a number from 0 to one day (NaN, negative, years) counts as not
told; so does a ticket that could not be sent back as a header. The most precise source wins: `Herdgate-Retry-Ms`, then
`Retry-After` (RFC 9110 section 10.2.3). A date is read against the `Date` of the same answer, so that no clock of ours
has to be right; without one it counts as not told. Close codes 1012 and 1013 carry JSON as their reason.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

__all__ = ["LONGEST_TOLD_S", "NOTHING", "Told", "denial_reason", "token_of", "told_by_close", "told_by_headers"]

LONGEST_TOLD_S = 86_400.0
"""Seconds; a longer delay is not believed."""

_COMEBACK_CODES = (1012, 1013)  # service restart, try again later: IANA registry, not in RFC 6455
_LONGEST_TOKEN = 512  # characters
_LONGEST_BODY = 4096  # bytes; a denial has about 150
_DIGITS = re.compile(r"[0-9]{1,10}", re.ASCII)


class Told(NamedTuple):
    """When to come back, and with what.

    Attributes:
        delay_s: seconds; None: not told.
        exact: the delay is meant for this client alone. Whole seconds are not: many are told the same.
        ticket: to be shown with the next handshake; None: none was given.
    """

    delay_s: float | None = None
    exact: bool = False
    ticket: str | None = None


NOTHING = Told()


def told_by_headers(headers: Mapping[str, str]) -> Told:
    """Read `Herdgate-Retry-Ms`, `Herdgate-Ticket`, `Retry-After` and `Date` of an HTTP answer, under these names."""
    ticket = token_of(headers.get("Herdgate-Ticket"))
    exact_s = _seconds(_digits(headers.get("Herdgate-Retry-Ms")), 1000)
    if exact_s is not None:
        return Told(exact_s, exact=True, ticket=ticket)
    return Told(_retry_after_s(headers), ticket=ticket)


def told_by_close(code: int, reason: str) -> Told:
    """Read a close frame: `{"retry_ms": ..., "ticket": ...}` behind code 1012 or 1013."""
    if code not in _COMEBACK_CODES:
        return NOTHING
    said = _object(reason)
    delay_s = _seconds(said.get("retry_ms"), 1000)
    return Told(delay_s, exact=delay_s is not None, ticket=token_of(said.get("ticket")))


def denial_reason(body: bytes | bytearray | None) -> str:
    """The gate's word for a denial (`rate`, `full`, ...), for people; "" where the body says none."""
    if body is None or len(body) > _LONGEST_BODY:
        return ""
    reason = _object(body.decode(errors="replace")).get("reason")
    return reason if isinstance(reason, str) and reason.isidentifier() and len(reason) <= 32 else ""


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    text = headers.get("Retry-After")
    if text is None or text.isdecimal():
        return _seconds(_digits(text), 1)
    until, now = _moment(text), _moment(headers.get("Date", ""))
    return None if until is None or now is None else _seconds(max(0.0, (until - now).total_seconds()), 1)


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else None


def _digits(text: str | None) -> int | None:
    return int(text) if text is not None and _DIGITS.fullmatch(text) else None


def _seconds(value: object, per_s: int) -> float | None:
    """A believable number of units, of which a second has `per_s`, in seconds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value / per_s if 0 <= value <= LONGEST_TOLD_S * per_s else None


def token_of(value: object) -> str | None:
    """A text of the gate's that can be sent back as a header; None for anything else."""
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_TOKEN:
        return None
    return value if value.isascii() and value.isprintable() and " " not in value else None


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
