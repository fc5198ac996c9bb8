"""Which pages may connect: `Origin` (RFC 6454) compared as parsed scheme, host and port, never as text."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from herdgate.core.errors import ConfigurationError

__all__ = ["AllowedOrigins", "OriginRules"]

AllowedOrigins = Sequence[str] | Literal["same-host"] | None

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


class _Origin(NamedTuple):
    scheme: str
    host: str
    port: int | None


class OriginRules:
    """Checks the `Origin` of an arrival. An arrival without one comes from no page, and passes.

    Args:
        allowed: origins such as `https://app.example`; `same-host`: the page's host and port are those of `Host`;
            None: nothing is checked.

    Raises:
        ConfigurationError: an entry is not scheme://host[:port].
    """

    def __init__(self, allowed: AllowedOrigins) -> None:
        self._same_host = allowed == "same-host"
        self._allowed: frozenset[_Origin] | None = None
        if allowed is None or self._same_host:
            return
        if isinstance(allowed, (str, bytes)) or not isinstance(allowed, Iterable):
            raise ConfigurationError("allowed_origins", allowed, 'write "same-host", a list, or None for all')
        self._allowed = frozenset(_read_setting(text) for text in allowed)

    def allow(self, origin: str | None, host: str) -> bool:
        """True if a handshake from this page may go on."""
        if origin is None or (self._allowed is None and not self._same_host):
            return True
        return self.allow_sharing(origin, host)

    def sharing(self, origin: str | None, host: str) -> list[tuple[bytes, bytes]]:
        """Headers that let a page of another host read an answer of ours (Fetch standard, CORS protocol)."""
        if origin is None or not self.allow_sharing(origin, host):
            return [(b"vary", b"origin")]
        return [
            (b"vary", b"origin"),
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", b"retry-after, herdgate-retry-ms, herdgate-ticket"),
        ]

    def allow_sharing(self, origin: str, host: str) -> bool:
        """True if a page of `origin` may read our answers: only those named, or of the same host."""
        return is_same_host(origin, host) if self._allowed is None else _parse(origin) in self._allowed


@lru_cache(maxsize=512)  # the pages of a crowd are few
def is_same_host(origin: str, host: str) -> bool:
    """True if the origin's host and port are those of the `Host` header."""
    page = _parse(origin)
    served = page and _parse(f"{page.scheme}://{host}")
    return page is not None and served is not None and served[1:] == page[1:]


@lru_cache(maxsize=512)
def _parse(text: str) -> _Origin | None:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if not parts.scheme or not parts.hostname or parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        return None
    return _Origin(parts.scheme, parts.hostname, _PORTS.get(parts.scheme) if port is None else port)


def _read_setting(text: object) -> _Origin:
    origin = _parse(text.rstrip("/")) if isinstance(text, str) else None
    if origin is None or "*" in origin.host:
        raise ConfigurationError("allowed_origins", text, 'write origins such as "https://app.example": no path, no *')
    try:
        return origin._replace(host=origin.host.encode("idna").decode()) if not origin.host.isascii() else origin
    except UnicodeError:
        raise ConfigurationError("allowed_origins", text, "write its host as browsers send it (xn--...)") from None
