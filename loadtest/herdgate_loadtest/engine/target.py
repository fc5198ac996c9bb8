"""Where a crowd goes: one `ws://` URL, looked up once, before anything is timed.

Rules: `ws` only. TLS would measure TLS: point the crowd at the listener behind it.
"""

import socket
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from herdgate_loadtest.errors import ConfigurationError

__all__ = ["Target"]

_WS_PORT = 80


@dataclass(frozen=True, slots=True)
class Target:
    """One listener.

    Attributes:
        host: the Host header's value.
        path: path and query.
        family: address family of `address`.
        address: what to connect to.
    """

    host: str
    path: str
    family: socket.AddressFamily
    address: tuple[Any, ...]

    @classmethod
    def of(cls, url: str) -> "Target":
        """Read and look up a URL; `{n}` in its path or query stands for the client's number.

        Raises:
            ConfigurationError: it is not a ws:// URL, or its host is unknown.
        """
        if not (url.isascii() and url.isprintable() and " " not in url):
            raise ConfigurationError(
                "url", ascii(url), "write printable ASCII: percent-encode a path, a host as xn--..."
            )
        try:
            parts = urlsplit(url)
            port = _WS_PORT if parts.port is None else parts.port
        except ValueError:
            raise ConfigurationError("url", url, "write ws://HOST:PORT/PATH, with a port up to 65535") from None
        if parts.scheme != "ws" or not parts.hostname or parts.username is not None or port == 0:
            raise ConfigurationError("url", url, "write ws://HOST:PORT/PATH, without TLS, user name and port 0")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        family, address = _look_up(url, parts.hostname, port)
        return cls(parts.netloc, path, family, address)

    @property
    def loopback(self) -> bool:
        """It is on this machine."""
        return ip_address(self.address[0].partition("%")[0]).is_loopback


def _look_up(url: str, host: str, port: int) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:  # UnicodeError: a name that no DNS can hold
        why = getattr(error, "strerror", None) or "not a name of the DNS"
        raise ConfigurationError("url", url, f"name a host that can be looked up ({why})") from None
    return family, address
