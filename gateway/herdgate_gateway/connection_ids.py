"""The connection id of an arrival: read where a route says it stands, or drawn at random. Pure.

Rules:
- an id is 1 to 128 characters of printable ASCII, without spaces, percent-decoded in a path and a query;
- what shows none, or two that differ, is refused; so is a path with an id in it and empty or dot segments, for that is
  one path here and another one at a worker that tidies it up;
- one that is drawn is 22 characters of base64url (RFC 4648 section 5), which is 128 bits;
- what a second socket of one id does is for the worker to see to, which is told what the route says.
"""

import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple
from urllib.parse import parse_qsl, unquote

from herdgate.asgi import Scope
from herdgate.core.numbers import check_number
from herdgate_gateway.headers import Fault, raw_path

__all__ = ["ConnectionIds", "Duplicates", "Place", "in_cookie", "in_header", "in_path", "in_query"]

Duplicates = Literal["allow", "refuse", "replace"]
"""What a second socket with the id of one that is open does: come in too, be refused, or close the first."""

_ID = re.compile(r"[\x21-\x7e]{1,128}")
_DRAWN_BYTES = 16
_MOST_PARAMETERS = 200


class Place(NamedTuple):
    """Where ids stand.

    Attributes:
        name: the place, for people.
        read: all that a handshake shows there.
    """

    name: str
    read: Callable[[Scope], Iterable[str]]


class ConnectionIds:
    """The ids of a route's arrivals.

    Args:
        place: where they stand. None: each is drawn.
        duplicates: as workers are told.
        token_bytes: gives so many random bytes.

    Attributes:
        duplicates: as given.
    """

    def __init__(
        self,
        place: Place | None = None,
        duplicates: Duplicates = "allow",
        *,
        token_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._place, self.duplicates = place, duplicates
        self._token_bytes = token_bytes

    @property
    def are_drawn(self) -> bool:
        """True if nothing of a handshake can be wrong about its id."""
        return self._place is None

    def find(self, scope: Scope) -> str | Fault:
        """The id of this arrival, or why it has none."""
        if self._place is None:
            return urlsafe_b64encode(self._token_bytes(_DRAWN_BYTES)).rstrip(b"=").decode()
        shown = set(self._place.read(scope))
        if len(shown) == 1 and _ID.fullmatch(found := shown.pop()):
            return found
        return Fault(
            400,
            f"a handshake has one connection id here, in {self._place.name}: "
            "1 to 128 characters of printable ASCII, without spaces",
        )


def in_path(segment: int) -> Place:
    """A segment of the path, counted from 1: the second one of `/chat/abc` is `abc`.

    Raises:
        ConfigurationError: `path`: this is no such number.
    """
    check_number("path", segment, least=1, unit="the number of a path segment", whole=True)

    def read(scope: Scope) -> Iterable[str]:
        segments = [unquote(part) for part in raw_path(scope).decode("latin-1").split("/")[1:]]
        untidy = any(part in (".", "..") for part in segments) or "" in segments[:-1]
        return () if untidy else segments[segment - 1 : segment]

    return Place(f"segment {segment} of the path", read)


def in_query(name: str) -> Place:
    """A parameter of the query."""

    def read(scope: Scope) -> Iterable[str]:
        query = scope.get("query_string", b"").decode("latin-1")
        try:
            pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
        except ValueError:  # too many
            return ()
        return [value for key, value in pairs if key == name]

    return Place(f"the query parameter {name}", read)


def in_header(name: str) -> Place:
    """A header."""
    return Place(f"the header {name}", lambda scope: _header(scope, name.lower()))


def in_cookie(name: str) -> Place:
    """A cookie (RFC 6265 section 4.2.1); quotes around its value are none of it."""

    def read(scope: Scope) -> Iterable[str]:
        pairs = [pair.strip().partition("=") for text in _header(scope, "cookie") for pair in text.split(";")]
        return [value.strip('"') for key, _, value in pairs if key == name]

    return Place(f"the cookie {name}", read)


def _header(scope: Scope, name: str) -> list[str]:
    wanted = name.encode("ascii")
    return [value.decode("latin-1").strip() for header, value in scope["headers"] if header.lower() == wanted]
