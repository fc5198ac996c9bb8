"""Opening handshakes as bytes, and those of case 6.12 that are refused: two parsers could read them in two ways."""

from collections.abc import Iterable

__all__ = ["AMBIGUOUS", "HANDSHAKE", "WITH_BODY", "request"]

KEY = "MDEyMzQ1Njc4OWFiY2RlZg=="
HANDSHAKE = {
    "Host": "localhost",
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": KEY,
    "Sec-WebSocket-Version": "13",
}


def request(
    method: str = "GET",
    target: str = "/ws",
    *,
    drop: str = "",
    add: Iterable[tuple[str, str]] = (),
    body: bytes = b"",
) -> bytes:
    """A handshake, without one header and with others."""
    pairs = [pair for pair in HANDSHAKE.items() if pair[0] != drop]
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in [*pairs, *add])]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


AMBIGUOUS = {
    "lengths": request(add=[("Content-Length", "0"), ("Content-Length", "5")], body=b"hello"),
    "POST": request("POST"),
    "two upgrades": request(add=[("Upgrade", "websocket")]),
    "websocket and h2c": request(add=[("Upgrade", "h2c")]),
    "h2c first": request(drop="Upgrade", add=[("Upgrade", "h2c"), ("Upgrade", "websocket")]),
    "a list": request(drop="Upgrade", add=[("Upgrade", "websocket, h2c")]),
    "h2c": request(drop="Upgrade", add=[("Upgrade", "h2c")]),
    "version 8": request(drop="Sec-WebSocket-Version", add=[("Sec-WebSocket-Version", "8")]),
    "two versions": request(add=[("Sec-WebSocket-Version", "8")]),
    "short key": request(drop="Sec-WebSocket-Key", add=[("Sec-WebSocket-Key", "c2hvcnQ=")]),
    "two keys": request(add=[("Sec-WebSocket-Key", KEY)]),
    "no host": request(drop="Host"),
    "two hosts": request(add=[("Host", "evil.example")]),
    "absolute": request(target="http://evil.example/ws"),
    "fragment": request(target="/ws#x"),
    "fragment in the query": request(target="/ws?x#y"),
    "folded": request(add=[("X-A", "1\r\n folded: 2")]),
}
WITH_BODY = {
    "length": request(add=[("Content-Length", "5")], body=b"hello"),
    "chunked": request(add=[("Transfer-Encoding", "chunked")], body=b"0\r\n\r\n"),
}
