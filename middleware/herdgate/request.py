"""What a guarded request says of itself: one pass over its headers, which also takes our tickets out.

A ticket is shown as header, query parameter or cookie, in that order; a session token as header or cookie, for a query
ends up in logs. All of them are removed from the scope in place, so that neither the app nor a server's access log,
which reads the same scope, ever sees one.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
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
    return _read_plain(scope, forwarding_header) or _read_any(scope, route, forwarding_header)


def _read_plain(scope: Scope, forwarding_header: str) -> Request | None:
    """One that shows nothing of ours and repeats no header, as most of a crowd; None: it may be another."""
    headers = scope["headers"]
    if not isinstance(headers, list):
        return None
    found = dict(headers)
    if len(found) < len(headers) or not found.keys().isdisjoint(_OURS) or b"herdgate_" in found.get(b"cookie", b""):
        return None
    if QUERY_NAME in scope.get("query_string", b""):
        return None
    origin, told = found.get(b"origin"), found.get(forwarding_header.encode())
    return Request(
        None,
        None,
        None if origin is None else origin.decode("latin-1"),
        found.get(b"host", b"").decode("latin-1"),
        () if told is None else (told.decode("latin-1"),),
    )


def _read_any(scope: Scope, route: str, forwarding_header: str) -> Request:
    found: dict[bytes, str] = {}
    forwarded: list[str] = []
    cookies: dict[str, str] = {}
    told, wanted = forwarding_header.encode(), _wanted(forwarding_header)
    shows_ours = False
    if not isinstance(scope["headers"], list):
        scope["headers"] = [(name, value) for name, value in scope["headers"]]
    for name, value in [pair for pair in scope["headers"] if pair[0] in wanted]:
        if name == told:
            forwarded.append(value.decode("latin-1"))
        elif name != b"cookie":
            found.setdefault(name, value.decode("latin-1"))
            shows_ours = shows_ours or name in _OURS
        elif b"herdgate_" in value:
            _strip_cookies(value, cookies)
            shows_ours = True
    if shows_ours:
        scope["headers"] = list(_others(scope["headers"]))
    queried = _strip_query(scope)
    return Request(
        ticket=found.get(TICKET_HEADER) or queried or cookies.get(f"{TICKET_COOKIE}{route}"),
        session=found.get(SESSION_HEADER) or cookies.get(f"{SESSION_COOKIE}{route}"),
        origin=found.get(b"origin"),
        host=found.get(b"host", ""),
        forwarded=tuple(forwarded),
    )


@lru_cache(maxsize=8)
def _wanted(forwarding_header: str) -> frozenset[bytes]:
    return frozenset((*_OURS, b"cookie", b"origin", b"host", forwarding_header.encode()))


def _others(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """All that is not ours."""
    for name, value in headers:
        if name == b"cookie" and b"herdgate_" in value:
            if others := _strip_cookies(value, {}):
                yield name, others
        elif name not in _OURS:
            yield name, value


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
