"""Client keys from what a handshake shows: a header or a cookie. Whoever shows none counts by address."""

from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie

from herdgate.asgi import Scope

__all__ = ["key_from_cookie", "key_from_header"]


def key_from_header(name: str) -> Callable[[Scope], str | None]:
    """The value of a header; only for one that clients cannot set themselves."""
    wanted = name.lower().encode("latin-1")

    def key(scope: Scope) -> str | None:
        values = [value for header, value in scope["headers"] if header == wanted]
        return values[-1].decode("latin-1") if values else None

    return key


def key_from_cookie(name: str) -> Callable[[Scope], str | None]:
    """The value of a cookie."""

    def key(scope: Scope) -> str | None:
        text = "; ".join(value.decode("latin-1") for header, value in scope["headers"] if header == b"cookie")
        try:
            morsel = SimpleCookie(text).get(name)
        except CookieError:
            return None
        return morsel.value if morsel else None

    return key
