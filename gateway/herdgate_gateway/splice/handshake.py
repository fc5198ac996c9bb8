"""The client's handshake at a worker: the request that goes there, and what its 101 may say. Pure.

Rules (RFC 6455 section 4.1):
- key, version, subprotocols and extensions are the client's own, so that both ends negotiate with each other; `Upgrade`
  and `Connection` are rebuilt, and the rest is that of `herdgate_gateway.headers`;
- a worker may choose only from what was offered;
- the client's 101 is the worker's, but for what belongs to one connection only.
"""

from collections.abc import Iterable, Sequence

from websockets.exceptions import InvalidHandshake
from websockets.headers import parse_connection, parse_extension, parse_upgrade
from websockets.http11 import Response
from websockets.utils import accept_key

from herdgate.asgi import Scope
from herdgate_gateway.headers import accept_headers, target

__all__ = ["Handshake", "client_head", "has_extension"]

_OWN = (b"sec-websocket-key", b"sec-websocket-version", b"sec-websocket-protocol", b"sec-websocket-extensions")


class Handshake:
    """One client's.

    Args:
        scope: of the client; its handshake has been checked (`headers.check_handshake`).
        headers: for the worker, without those of the handshake itself.

    Attributes:
        request: the bytes for the worker.
    """

    __slots__ = ("_extensions", "_key", "_subprotocols", "request")

    def __init__(self, scope: Scope, headers: Sequence[tuple[str, str]]) -> None:
        own = [(name, value) for name, value in scope["headers"] if name in _OWN and value.strip()]
        told = [(name.decode("ascii"), value.decode("latin-1")) for name, value in own]
        self._key = _values(told, "sec-websocket-key")[0].strip()
        self._subprotocols = _listed(_values(told, "sec-websocket-protocol"))
        self._extensions = _extension_names(_values(told, "sec-websocket-extensions"))
        pairs = (*headers, ("upgrade", "websocket"), ("connection", "Upgrade"), *told)
        lines = [f"GET {target(scope)} HTTP/1.1", *(f"{name}: {value}" for name, value in pairs)]
        self.request = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"

    def fault(self, response: Response) -> str | None:
        """What is wrong with a worker's answer as a 101; None: it is sound."""
        if response.status_code != 101:
            return f"status {response.status_code} is no answer to a handshake"
        headers = response.headers
        if not _upgrades(headers.get_all("Upgrade"), headers.get_all("Connection")):
            return "it does not upgrade to a WebSocket"
        if headers.get_all("Sec-WebSocket-Accept") != [accept_key(self._key)]:
            return "it answers another key"
        subprotocols = headers.get_all("Sec-WebSocket-Protocol")
        if len(subprotocols) > 1 or not {name.strip() for name in subprotocols} <= self._subprotocols:
            return "its subprotocol was not offered"
        chosen = headers.get_all("Sec-WebSocket-Extensions")
        names = _extension_names(chosen)
        if bool(names) != bool(chosen) or not names <= self._extensions:
            return "its extension was not offered"
        return None


def client_head(response: Response) -> bytes:
    """The client's 101."""
    headers = response.headers
    pairs = [(b"upgrade", b"websocket"), (b"connection", b"Upgrade")]
    for name in ("sec-websocket-accept", "sec-websocket-protocol", "sec-websocket-extensions"):
        pairs += [(name.encode("ascii"), value.encode("latin-1")) for value in headers.get_all(name)]
    pairs += accept_headers(headers.raw_items())
    lines = [b"HTTP/1.1 101 Switching Protocols", *(b"%b: %b" % pair for pair in pairs)]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def has_extension(response: Response) -> bool:
    """True if the worker's 101 agrees on one."""
    return "Sec-WebSocket-Extensions" in response.headers


def _values(pairs: Iterable[tuple[str, str]], name: str) -> list[str]:
    return [value for key, value in pairs if key == name]


def _listed(values: Iterable[str]) -> set[str]:
    return {name.strip() for value in values for name in value.split(",")} - {""}


def _extension_names(values: Iterable[str]) -> set[str]:
    """None of them if one value cannot be read."""
    try:
        return {str(name) for value in values for name, _ in parse_extension(value)}
    except InvalidHandshake:
        return set()


def _upgrades(upgrade: Iterable[str], connection: Iterable[str]) -> bool:
    try:
        protocols = [protocol.lower() for value in upgrade for protocol in parse_upgrade(value)]
        options = [option.lower() for value in connection for option in parse_connection(value)]
    except InvalidHandshake:
        return False
    return protocols == ["websocket"] and "upgrade" in options
