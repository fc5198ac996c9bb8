"""The head of a simple handshake, read at once, into the scope that uvicorn would make of it. Pure.

Rules:
- simple is what browsers and libraries send: one whole request and nothing behind it, printable ASCII on lines that end
  with CRLF, an origin-form target, no body, no empty value, each header of the handshake once (RFC 6455 section 4.2.1);
- what is not simple is not judged here: None leaves it to uvicorn's parsers, which decide again. So None is always
  right, and a scope that differs from theirs never;
- whatever they refuse themselves is not simple either: a repeated `Origin`, a line of more than 8 KiB.

Two facts prove a head without a look at each line: it was cut wherever a field begins behind a line end, and there are
no more line ends than cuts; and all else in it is printable.
"""

import re
from urllib.parse import unquote

from herdgate.asgi import Scope

__all__ = ["MOST_BYTES", "MOST_HEADERS", "read_head"]

MOST_BYTES = 16 * 1024
"""Of a head."""

MOST_HEADERS = 100

_LONGEST_LINE = 8_192 - 3
"""Bytes. The `websockets` library reads 8,192, with the line end, and a space that uvicorn writes behind the colon."""

_END = b"\r\n\r\n"
_OFFER = b"sec-websocket-protocol"
_PRINTABLE = bytes(range(0x20, 0x7F))
_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"  # RFC 9110 section 5.6.2
# No cut behind a line that ends with a space, and none before an empty value.
_cut_at_names = re.compile(rb"\r\n(?<! \r\n)(" + _TOKEN + rb"): *+(?!\r)").split
_match_start = re.compile(rb"GET (/[^ #]*+) HTTP/1\.1").fullmatch
_match_key = re.compile(rb"[A-Za-z0-9+/]{22}==").fullmatch  # base64 of 16 bytes
_match_offer = re.compile(_TOKEN + rb"(?: *+, *+" + _TOKEN + rb")*+").fullmatch

# What else `Connection` may name, two parsers could take in two ways.
_CONNECTION = frozenset(
    (b"upgrade", b"keep-alive, upgrade", b"keep-alive,upgrade", b"upgrade, keep-alive", b"upgrade,keep-alive")
)
_ONCE = (
    b"connection",
    b"host",
    b"origin",
    b"sec-websocket-key",
    _OFFER,
    b"sec-websocket-version",
    b"upgrade",
)


def read_head(
    data: bytes, *, client: tuple[str, int] | None, server: tuple[str, int | None] | None, scheme: str
) -> Scope | None:
    """The scope of a simple handshake; None for anything else.

    Args:
        data: all that the client has sent.
        client: host and port of the peer, if it has an address.
        server: host and port, or the path of a Unix socket and None.
        scheme: "ws" or "wss".
    """
    cut = _cut(data)
    if cut is None:
        return None
    asked = _match_start(cut[0])
    found = dict(zip(map(bytes.lower, cut[1::2]), cut[2::2]))  # noqa: B905, cut in pairs
    if asked is None or not _is_handshake(found):
        return None
    headers = list(found.items())
    if len(headers) < len(cut) // 2:
        headers = [(name.lower(), value) for name, value in zip(cut[1::2], cut[2::2], strict=True)]
        if _is_repeated([name for name, _ in headers]):
            return None
    path, _, query = asked[1].partition(b"?")
    text = path.decode("ascii")
    return {
        "type": "websocket",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "scheme": scheme,
        "server": server,
        "client": client,
        "root_path": "",
        "path": unquote(text) if "%" in text else text,
        "raw_path": path,
        "query_string": query,
        "headers": headers,
        "subprotocols": _offered(found) if _OFFER in found else [],
        "state": {},
        "extensions": {"websocket.http.response": {}},
    }


def _cut(data: bytes) -> list[bytes] | None:
    """The request line, then name, value, name, value."""
    if not data.endswith(_END) or data.endswith(b" " + _END) or not _is_short(data):
        return None
    cut = _cut_at_names(data)
    fields = len(cut) // 2
    if fields > MOST_HEADERS or data.translate(None, _PRINTABLE) != b"\r\n" * (fields + 2):
        return None
    cut[-1] = cut[-1][: -len(_END)]
    return cut


def _is_short(data: bytes) -> bool:
    if len(data) <= _LONGEST_LINE:
        return True
    return len(data) <= MOST_BYTES and max(map(len, data.split(b"\r\n"))) <= _LONGEST_LINE


def _is_handshake(found: dict[bytes, bytes]) -> bool:
    return (
        found.get(b"upgrade", b"").lower() == b"websocket"
        and found.get(b"connection", b"").lower() in _CONNECTION
        and found.get(b"sec-websocket-version") == b"13"
        and _match_key(found.get(b"sec-websocket-key", b"")) is not None
        and b"host" in found
        and b"content-length" not in found
        and b"transfer-encoding" not in found
        and b"expect" not in found
        and (_OFFER not in found or _match_offer(found[_OFFER]) is not None)
    )


def _is_repeated(names: list[bytes]) -> bool:
    return any(names.count(name) > 1 for name in _ONCE)


def _offered(found: dict[bytes, bytes]) -> list[str]:
    return [name.strip() for name in found[_OFFER].decode("ascii").split(",")]
