"""The heads of a handshake on its way through: what passes, what is rebuilt, what is refused. Pure.

Rules:
- hop-by-hop headers, whatever `Connection` names (RFC 9110 section 7.6.1), and what gateways and workers tell each
  other end here; each leg negotiates its own `Sec-WebSocket-*`; what a client sends under `Herdgate-*` is between it
  and us;
- the worker is told the connection id that was found in front, as `Herdgate-Connection-Id`, and what a second
  socket with it does, as `Herdgate-Duplicates`, where not all are let in;
- the worker gets exactly one `Host`, the client's;
- `X-Forwarded-For`, `-Proto` and `-Host` are ours, and whatever came under such a name is dropped, `Forwarded` and
  `X-Real-IP` too. An underscore counts as a hyphen, as some frameworks read it so;
- a handshake that two parsers could read in two ways, its path included, is refused (RFC 6455 section 4.2.1, RFC 9112
  section 6).
"""

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import quote

from herdgate import AddressRules
from herdgate.asgi import Scope
from herdgate.core.clients import LOCAL, ForwardingHeader, parse_address

__all__ = [
    "Fault",
    "Forwarding",
    "accept_headers",
    "check_handshake",
    "check_path",
    "raw_path",
    "refusal_headers",
    "request_headers",
    "target",
]

Pair = tuple[bytes, bytes]

_HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"http2-settings",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
_BETWEEN_US = frozenset(
    (
        b"herdgate-connection-id",
        b"herdgate-duplicates",
        b"herdgate-epoch",
        b"herdgate-gateway",
        b"herdgate-owner",
        b"herdgate-shard",
    )
)
_DROPPED = _HOP_BY_HOP | _BETWEEN_US
_NO_BODY = frozenset((b"content-length", b"expect"))
_SERVER_S_OWN = frozenset((b"content-length", b"date", b"server"))
_ORIGIN = (b"x-forwarded-", b"forwarded", b"x-real-ip")
# A segment of dots, with parameters or without; a backslash; and what becomes one of these, or a slash, once decoded.
_AMBIGUOUS = re.compile(rb"(/|^)(\.|%2e){1,2}(/|;|$)|\\|%2f|%5c|%25(2e|2f|5c|25)", re.IGNORECASE)
_TARGET = re.compile(rb"/[\x21\x22\x24-\x7e]*")  # neither whitespace nor a fragment (RFC 9112 section 3.2.1)


class Fault(NamedTuple):
    """Why a handshake is refused: the status, and one line."""

    status: int
    text: str


def check_handshake(scope: Scope) -> Fault | None:
    """None for a handshake that can be read in one way only.

    Servers refuse most others themselves; what they let through differs between them.
    """
    found: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.lower(), []).append(value.strip())
    if len(found.get(b"host", ())) != 1:
        return Fault(400, "a handshake has exactly one Host")
    if b"transfer-encoding" in found or any(length != b"0" for length in found.get(b"content-length", ())):
        return Fault(400, "a handshake has no body")
    if [value.lower() for value in found.get(b"upgrade", ())] != [b"websocket"]:
        return Fault(400, "a handshake has exactly one Upgrade: websocket")
    if found.get(b"sec-websocket-version") != [b"13"]:
        return Fault(426, "the WebSocket version spoken here is 13")
    if not _is_key(found.get(b"sec-websocket-key", ())):
        return Fault(400, "a handshake has exactly one Sec-WebSocket-Key, of 16 bytes")
    if scope.get("http_version", "1.1") != "1.1":
        return Fault(400, "a handshake is HTTP/1.1")
    if _named_by_connection(found.get(b"connection", ())) & found.keys() - _HOP_BY_HOP:
        # Else a header that was checked, or that vouches for the client, could be dropped behind the check.
        return Fault(400, "the Connection of a handshake names no header that is to arrive")
    return _check_target(scope)


def _check_target(scope: Scope) -> Fault | None:
    path = raw_path(scope)
    if _TARGET.fullmatch(path) is None or b"#" in scope.get("query_string", b""):
        return Fault(400, "a handshake asks for a path")
    return check_path(path)


def check_path(path: bytes) -> Fault | None:
    """None for a path that stands for one thing only, however it is tidied up."""
    if _AMBIGUOUS.search(path):
        return Fault(400, "a path has neither dot segments nor backslashes nor encoded separators")
    return None


def _is_key(values: Sequence[bytes]) -> bool:
    try:
        return len(values) == 1 and len(base64.b64decode(values[0], validate=True)) == 16
    except binascii.Error:
        return False


def target(scope: Scope) -> str:
    """The path and query to ask the worker for, percent-encoding untouched."""
    query: bytes = scope.get("query_string", b"")
    path = raw_path(scope).decode("ascii")
    return f"{path}?{query.decode('latin-1')}" if query else path


def raw_path(scope: Scope) -> bytes:
    """The path as it came."""
    raw: bytes | None = scope.get("raw_path")  # optional in ASGI
    return quote(scope["path"]).encode() if raw is None else raw


class Forwarding:
    """What a worker is told of the client behind the connection.

    Args:
        trusted_proxies: networks of peers whose word on the client's address and scheme is passed on.
        forwarding_header: where they write the address.

    Raises:
        ConfigurationError: one of these is not of its kind.
    """

    def __init__(
        self, trusted_proxies: Sequence[str] = (), forwarding_header: ForwardingHeader = "x-forwarded-for"
    ) -> None:
        self._rules = AddressRules(
            trusted_proxies=trusted_proxies, forwarding_header=forwarding_header, ipv6_prefix=128
        )
        self._address_header = forwarding_header.encode()

    def headers(self, scope: Scope) -> list[Pair]:
        """`X-Forwarded-For` (left out if the peer has no address), `-Proto` and `-Host`."""
        peer = scope.get("client")
        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        pairs = [(b"x-forwarded-proto", self._proto(scope, peer)), (b"x-forwarded-host", host)]
        address = self._address(scope, peer)
        return [(b"x-forwarded-for", address), *pairs] if address else pairs

    def _address(self, scope: Scope, peer: Sequence[object] | None) -> bytes:
        told = [value.decode("latin-1") for name, value in scope["headers"] if name == self._address_header]
        client = self._rules.client(str(peer[0]) if peer else None, told)
        return b"" if client == LOCAL else client.address.removeprefix("ip:").removesuffix("/128").encode()

    def _proto(self, scope: Scope, peer: Sequence[object] | None) -> bytes:
        if self._is_trusted(peer):
            told = [value for name, value in scope["headers"] if name == b"x-forwarded-proto"]
            last = told[-1].rpartition(b",")[2].strip().lower() if told else b""
            if last in (b"http", b"https"):
                return last
        return b"https" if scope.get("scheme") == "wss" else b"http"

    def _is_trusted(self, peer: Sequence[object] | None) -> bool:
        address = parse_address(str(peer[0])) if peer else None
        return address is not None and self._rules.is_trusted(address)


def request_headers(scope: Scope, forwarding: Forwarding) -> list[tuple[str, str]]:
    """The headers for the worker, `Host` first, without the handshake's own (`Upgrade`, `Sec-WebSocket-Key`, ...)."""
    pairs: Iterable[Pair] = scope["headers"]
    host = [(b"host", value) for name, value in pairs if name == b"host"]
    kept = [(name, value) for name, value in _end_to_end(pairs) if not _is_ours(name.replace(b"_", b"-"))]
    told = (*forwarding.headers(scope), *_connection(scope))
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in (*host, *kept, *told)]


def _connection(scope: Scope) -> list[Pair]:
    state = scope.get("state") or {}
    found: list[tuple[bytes, str | None]] = [
        (b"herdgate-connection-id", state.get("connection_id")),
        (b"herdgate-duplicates", state.get("duplicates")),
    ]
    return [(name, value.encode("ascii")) for name, value in found if value is not None]


def _is_ours(name: bytes) -> bool:
    """True for what the worker must not get from the client under this name."""
    if name == b"host" or name in _HOP_BY_HOP or name in _NO_BODY:
        return True
    return name.startswith((b"sec-websocket-", b"herdgate-", *_ORIGIN))


def accept_headers(pairs: Iterable[tuple[str, str]]) -> list[Pair]:
    """Of the worker's 101, what the client's 101 carries too: cookies, and whatever the application added."""
    return [
        (name, value)
        for name, value in _end_to_end(_encoded(pairs))
        if name not in _SERVER_S_OWN and not name.startswith(b"sec-websocket-")
    ]


def refusal_headers(pairs: Iterable[tuple[str, str]], body: bytes) -> list[Pair]:
    """The worker's refusal, for a connection that ends with it."""
    kept = [(name, value) for name, value in _end_to_end(_encoded(pairs)) if name != b"content-length"]
    return [*kept, (b"content-length", b"%d" % len(body)), (b"connection", b"close")]


def _encoded(pairs: Iterable[tuple[str, str]]) -> list[Pair]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in pairs]


def _end_to_end(pairs: Iterable[Pair]) -> list[Pair]:
    pairs = [(name.lower(), value) for name, value in pairs]
    named = _named_by_connection(value for name, value in pairs if name == b"connection")
    return [(name, value) for name, value in pairs if name not in _DROPPED and name not in named]


def _named_by_connection(values: Iterable[bytes]) -> set[bytes]:
    return {token.strip().lower() for value in values for token in value.split(b",")}
