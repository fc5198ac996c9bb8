"""What a refusal looks like on the wire.

An HTTP denial carries everything: status, `Retry-After` (RFC 9110 section 10.2.3), milliseconds, ticket, JSON. A page
in a browser can read none of it after a failed handshake, so browsers get a close denial: accept, then close 1013 with
the delay and the ticket as the reason, and the ticket in a cookie on the 101.
"""

import json
import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

from herdgate.core.answers import STATUS, Denied, Invitation, Reason
from herdgate.core.errors import ConfigurationError

__all__ = [
    "TRY_AGAIN_LATER",
    "DenialStyle",
    "TicketCookie",
    "challenge",
    "close_reason",
    "http_denial",
    "our_cookie",
    "read_statuses",
    "retry_ms",
]

DenialStyle = Literal["auto", "http", "close"]
Headers = list[tuple[bytes, bytes]]

TRY_AGAIN_LATER = 1013
"""Close code registered with IANA; not in RFC 6455."""

_ERRORS: dict[Reason, str] = {
    "draining": "this server is going away",
    "origin": "this origin is not allowed",
    "shed": "the service is letting in only a part of its clients",
    "client_rate": "this client comes too often",
    "client_open": "this client holds too many connections",
    "full": "the service is full",
    "rate": "a crowd is being let in, in order",
    "auth": "this client is not allowed",
    "auth_busy": "too many clients are being authenticated",
    "no_owner": "nobody serves this connection at the moment",
    "upstream": "the server behind this gateway does not take it",
}


_ALWAYS = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"connection", b"close"),
)

# What differs between denials is a number and a ticket, which needs no escape: a crowd is told without json.dumps.
_BODY = {
    reason: f'{{"error": {json.dumps(error)}, "reason": "{reason}", '.encode() + b'"retry_ms": %b, "ticket": %b}'
    for reason, error in _ERRORS.items()
}


def read_statuses(statuses: Mapping[Reason, int]) -> dict[Reason, int]:
    """The status of every reason, with the given ones in place of the defaults.

    Raises:
        ConfigurationError: an unknown reason, or a status that is no refusal.
    """
    if not isinstance(statuses, Mapping):
        raise ConfigurationError("statuses", statuses, 'write a dict, as in {"rate": 503}')
    for reason, status in statuses.items():
        if reason not in STATUS:
            raise ConfigurationError("statuses", reason, f"write reasons of {', '.join(STATUS)}")
        if isinstance(status, bool) or not isinstance(status, int) or not 400 <= status <= 599:
            raise ConfigurationError(f"statuses[{reason!r}]", status, "write an HTTP status from 400 to 599")
    return {**STATUS, **statuses}


def retry_ms(denied: Denied | Invitation) -> int | None:
    """Whole milliseconds to wait, rounded up, at least 1; None: never."""
    return None if denied.retry_s is None else max(1, math.ceil(denied.retry_s * 1000))


def http_denial(denied: Denied) -> tuple[Headers, bytes]:
    """Headers and JSON body of an HTTP denial."""
    headers: Headers = [*_ALWAYS]
    wait, told, ticket = retry_ms(denied), b"null", b"null"
    if wait is not None:
        told = b"%d" % wait
        headers += ((b"retry-after", b"%d" % -(-wait // 1000)), (b"herdgate-retry-ms", told))
    if denied.ticket is not None:
        shown = denied.ticket.encode()
        headers.append((b"herdgate-ticket", shown))
        ticket = b'"%b"' % shown
    if denied.quota is not None:
        limit, window_s = denied.quota
        headers.append((b"ratelimit-policy", b'"client";q=%d;w=%d' % (limit, window_s)))
        headers.append((b"ratelimit", b'"client";r=0;t=%d' % -(-(wait or 0) // 1000)))
    body = _BODY[denied.reason] % (told, ticket)
    headers.append((b"content-length", b"%d" % len(body)))
    return headers, body


def challenge(status: int, told: str | None = None) -> Headers:
    """What every 401 has beside the rest: how to authenticate (RFC 9110 section 11.6.1).

    Args:
        told: by whoever refused. None: a token is wanted (RFC 6750 section 3).
    """
    return [(b"www-authenticate", (told or "Bearer").encode("latin-1"))] if status == 401 else []


def close_reason(denied: Denied | Invitation) -> str:
    """The reason of a close denial, or of a close that calls back: compact JSON.

    It stays well under the 123 bytes that a close frame has (RFC 6455 section 5.5). `reconnect` is for clients of
    Centrifugo, which never come back after a reason in JSON that does not ask for it.
    """
    wait = retry_ms(denied)
    ticket = "" if denied.ticket is None else f',"ticket":"{denied.ticket}"'  # needs no escape
    if wait is None:
        return f'{{"retry_ms":null{ticket}}}'
    return f'{{"retry_ms":{wait}{ticket},"reconnect":true}}'


def our_cookie(name: str, value: str, *, age_s: float, path: str, secure: bool, same_site: bool) -> bytes:
    """The `Set-Cookie` value that makes a browser show a text of ours with its next handshakes (RFC 6265).

    Args:
        age_s: how long the text is worth something.
        secure: the connection is TLS.
        same_site: the page is of our own host; else the cookie must be marked to travel, which takes TLS.
    """
    text = f"{name}={value}; Path={path}; Max-Age={math.ceil(age_s)}; HttpOnly"
    text += "; SameSite=Lax" if same_site or not secure else "; SameSite=None"
    return (text + "; Secure" if secure else text).encode()


class TicketCookie(NamedTuple):
    """The cookie that brings the ticket of a close denial back; see `our_cookie`.

    Attributes:
        grace_s: seconds after its time in which a ticket still counts for something.
    """

    name: str
    path: str
    secure: bool
    same_site: bool
    grace_s: float

    def age_s(self, denied: Denied) -> int:
        """How long the ticket is worth something, seconds."""
        return math.ceil((denied.retry_s or 0) + self.grace_s)

    def headers(self, denied: Denied) -> Headers:
        """For the 101; none for a denial without a ticket."""
        if denied.ticket is None:
            return []
        name, path, secure, same_site, _ = self
        age_s = self.age_s(denied)
        return [
            (b"set-cookie", our_cookie(name, denied.ticket, age_s=age_s, path=path, secure=secure, same_site=same_site))
        ]
