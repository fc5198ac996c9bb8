"""Where a request carries its token: in a header, in the query, or in a cookie.

A token shown twice is no token: the one that is checked here might not be the one that the worker reads.
"""

from collections.abc import Iterable
from typing import Literal
from urllib.parse import parse_qsl

from herdgate.asgi import Scope

__all__ = ["Place", "find_token"]

Place = Literal["header", "query", "cookie"]

_MOST_PARAMETERS = 200
_BEARER = "bearer "


def find_token(scope: Scope, place: Place, name: str) -> str | None:
    """The one token that a request shows; None without one, or with several.

    Args:
        scope: of a handshake or a request.
        place: where to look.
        name: of the header (lower case; a `Bearer` before the token is dropped), parameter or cookie.
    """
    if place == "header":
        tokens = [_strip_scheme(value) for value in _headers(scope, name)]
    elif place == "query":
        tokens = _query_values(scope, name)
    else:
        tokens = [value for header in _headers(scope, "cookie") for value in _cookie_values(header, name)]
    return tokens[0] or None if len(tokens) == 1 else None


def _headers(scope: Scope, name: str) -> Iterable[str]:
    wanted = name.encode("ascii")
    return (value.decode("latin-1") for header, value in scope["headers"] if header == wanted)


def _strip_scheme(value: str) -> str:
    value = value.strip()
    return value[len(_BEARER) :].strip() if value[: len(_BEARER)].lower() == _BEARER else value


def _query_values(scope: Scope, name: str) -> list[str]:
    query = scope.get("query_string", b"").decode("latin-1")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError:  # too many
        return []
    return [value for key, value in pairs if key == name]


def _cookie_values(header: str, name: str) -> Iterable[str]:
    pairs = (pair.strip().partition("=") for pair in header.split(";"))
    return (value.strip('"') for key, _, value in pairs if key == name)
