"""What a guarded request says of itself: one pass over its headers, which also takes our tickets out.

A ticket is shown as header, query parameter or cookie, in that order; a session token as header or cookie, for a query
ends up in logs. All of them are removed from the scope in place, so that neither the app nor a server's access log,
which reads the same scope, ever sees one.
"""

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote

from herdgate.asgi import Scope

__all__ = ["SESSION_COOKIE", "SESSION_HEADER", "TICKET_COOKIE", "Request", "read_request"]

TICKET_COOKIE, SESSION_COOKIE = "herdgate_ticket_", "herdgate_session_"
"""What our cookies begin with; the route's name follows."""

TICKET_HEADER, SESSION_HEADER = b"herdgate-ticket", b"herdgate-session"
QUERY_NAME = b"herdgate_ticket"
_OURS = (TICKET_HEADER, SESSION_HEADER)


class Request(NamedTuple):
    """The parts of a request that decide about it.

    Attributes:
        ticket: what was shown, unchecked.
        session: the session token that was shown, unchecked.
        origin: the `Origin` header; browsers always send one with a handshake.
        host: the `Host` header.
        forwarded: the values of the forwarding header asked for.
    """

    ticket: str | None
    session: str | None
    origin: str | None
    host: str
    forwarded: tuple[str, ...]


def read_request(scope: Scope, route: str, forwarding_header: str) -> Request:
    """Read `scope` and remove every ticket and session token from it."""
    found: dict[bytes, str] = {}
    forwarded: list[str] = []
    kept: list[tuple[bytes, bytes]] = []
    cookies: dict[str, str] = {}
    wanted_header = forwarding_header.encode()
    for name, value in scope["headers"]:
        if name in _OURS:
            found.setdefault(name, value.decode("latin-1"))
            continue
        if name == b"cookie" and b"herdgate_" in value:
            others = _strip_cookies(value, cookies)
            if others:
                kept.append((name, others))
            continue
        if name in (b"origin", b"host"):
            found.setdefault(name, value.decode("latin-1"))
        elif name == wanted_header:
            forwarded.append(value.decode("latin-1"))
        kept.append((name, value))
    scope["headers"] = kept
    queried = _strip_query(scope)
    return Request(
        ticket=found.get(TICKET_HEADER) or queried or cookies.get(f"{TICKET_COOKIE}{route}"),
        session=found.get(SESSION_HEADER) or cookies.get(f"{SESSION_COOKIE}{route}"),
        origin=found.get(b"origin"),
        host=found.get(b"host", ""),
        forwarded=tuple(forwarded),
    )


def _strip_cookies(header: bytes, ours: dict[str, str]) -> bytes:
    """The cookie header without our cookies, which are added to `ours`; of one name the first that says something."""
    kept = []
    for pair in header.decode("latin-1").split(";"):
        name, _, value = pair.strip().partition("=")
        if not name.startswith((TICKET_COOKIE, SESSION_COOKIE)):
            kept.append(pair.strip())
        elif value:
            ours.setdefault(name, value)
    return "; ".join(kept).encode("latin-1")


def _strip_query(scope: Scope) -> str | None:
    query: bytes = scope.get("query_string", b"")
    if QUERY_NAME not in query:
        return None
    pairs = query.split(b"&")
    scope["query_string"] = b"&".join(pair for pair in pairs if not _is_ticket(pair))
    return next((text for text in _values(filter(_is_ticket, pairs)) if text), None)


def _is_ticket(pair: bytes) -> bool:
    return pair.partition(b"=")[0] == QUERY_NAME


def _values(pairs: Iterable[bytes]) -> Iterable[str]:
    return (unquote(pair.partition(b"=")[2].decode("latin-1")) for pair in pairs)
