"""What a guarded request says of itself: one pass over its headers, which also takes our tickets out.

A ticket is shown as header, query parameter or cookie, in that order. All of them are removed from the scope in place,
so that neither the app nor a server's access log, which reads the same scope, ever sees one.
"""

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote

from herdgate.asgi import Scope

__all__ = ["COOKIE_PREFIX", "Request", "read_request"]

COOKIE_PREFIX = "herdgate_ticket_"
QUERY_NAME = b"herdgate_ticket"
HEADER_NAME = b"herdgate-ticket"


class Request(NamedTuple):
    """The parts of a request that decide about it.

    Attributes:
        ticket: what was shown, unchecked.
        origin: the `Origin` header; browsers always send one with a handshake.
        host: the `Host` header.
        forwarded: the values of the forwarding header asked for.
    """

    ticket: str | None
    origin: str | None
    host: str
    forwarded: tuple[str, ...]


def read_request(scope: Scope, route: str, forwarding_header: str) -> Request:
    """Read `scope` and remove every ticket from it."""
    found: dict[bytes, str] = {}
    forwarded: list[str] = []
    kept: list[tuple[bytes, bytes]] = []
    cookies: list[str] = []
    wanted_header = forwarding_header.encode()
    for name, value in scope["headers"]:
        if name == HEADER_NAME:
            found.setdefault(name, value.decode("latin-1"))
            continue
        if name == b"cookie" and COOKIE_PREFIX.encode() in value:
            others = _strip_cookies(value, f"{COOKIE_PREFIX}{route}", cookies)
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
    ticket = next((text for text in (found.get(HEADER_NAME), queried, *cookies) if text), None)
    return Request(ticket, found.get(b"origin"), found.get(b"host", ""), tuple(forwarded))


def _strip_cookies(header: bytes, wanted: str, tickets: list[str]) -> bytes:
    """The cookie header without our cookies; the values of the one wanted are added to `tickets`."""
    kept = []
    for pair in header.decode("latin-1").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == wanted:
            tickets.append(value)
        if not name.startswith(COOKIE_PREFIX):
            kept.append(pair.strip())
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
