"""The opening handshake on the wire, client side (RFC 6455 section 4.1, RFC 9112).

Rules: sans-I/O. `parse_response` is given all bytes received so far and is asked again when there are more: it keeps
no state, so a client that waits for an answer costs nothing but those bytes. Everything is bounded: 16 KiB of head,
64 KiB of body. A server that breaks the rules is a `WireError`.
"""

import base64
import hashlib
from typing import TYPE_CHECKING, NamedTuple

from herdgate_loadtest.errors import ConfigurationError, WireError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MOST_BODY", "MOST_HEAD", "Handshake", "Response", "accept_for", "check_upgrade", "parse_response"]

MOST_HEAD = 16 * 1024
MOST_BODY = 64 * 1024

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_BLANK_LINE = b"\r\n\r\n"
_VERSION = b"HTTP/1."


class Response(NamedTuple):
    """A whole answer to a handshake.

    Attributes:
        status: HTTP status.
        headers: by lower-case name; repeated ones are joined with ", ".
        body: b"" for a 101.
        rest: what came after it: the first frames.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    rest: bytes


class Handshake:
    """The request of a crowd, built once and completed per try.

    Args:
        host: value of the Host header.
        path: path and query.
        origin: value of the Origin header; None: not a browser.
        subprotocol: offered to the server, if any.
        headers: more headers.

    `{n}` in the path or in a header stands for the client's number, so each client can be someone of its own.

    Raises:
        ConfigurationError: a value would break the request; names the setting of `CrowdConfig`.
    """

    __slots__ = ("_head", "_numbered")

    def __init__(
        self,
        host: str,
        path: str,
        *,
        origin: str | None = None,
        subprotocol: str | None = None,
        headers: "Iterable[tuple[str, str]]" = (),
    ) -> None:
        lines = [
            _checked("urls", f"GET {path} HTTP/1.1"),
            _checked("urls", f"Host: {host}"),
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
        ]
        if origin is not None:
            lines.append(_checked("origin", f"Origin: {origin}"))
        if subprotocol is not None:
            lines.append(_checked("subprotocol", f"Sec-WebSocket-Protocol: {subprotocol}"))
        lines += [_checked("headers", f"{name}: {value}") for name, value in headers]
        self._head = "".join(f"{line}\r\n" for line in lines).encode()
        self._numbered = b"{n}" in self._head

    def build(self, number: int, key: bytes, ticket: str | None = None) -> bytes:
        """The bytes of one try. `key` is 16 random bytes in base64."""
        head = self._head.replace(b"{n}", b"%d" % number) if self._numbered else self._head
        if ticket is None:
            return b"%bSec-WebSocket-Key: %b\r\n\r\n" % (head, key)
        return b"%bSec-WebSocket-Key: %b\r\nHerdgate-Ticket: %b\r\n\r\n" % (head, key, ticket.encode())


def _checked(field: str, line: str) -> str:
    if not (line.isascii() and line.isprintable()):
        raise ConfigurationError(field, line, "write printable ASCII, and percent-encode a path")
    return line


def accept_for(key: bytes) -> str:
    """What the server must answer to `key` (RFC 6455 section 4.2.2)."""
    return base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest()).decode()


def check_upgrade(response: Response, key: bytes) -> None:
    """Raise `WireError` unless this 101 is the answer to our handshake."""
    if response.headers.get("upgrade", "").lower() != "websocket":
        raise WireError("101 without Upgrade: websocket")
    if response.headers.get("sec-websocket-accept") != accept_for(key):
        raise WireError("101 with the wrong Sec-WebSocket-Accept")


def parse_response(data: bytes, *, ended: bool = False) -> Response | None:
    """Read the answer to a handshake; None: more bytes are needed.

    Args:
        data: everything received so far.
        ended: the server has closed its side.

    Raises:
        WireError: this is no HTTP/1 answer, it is too large, or it ended half-way.
    """
    end = data.find(_BLANK_LINE, 0, MOST_HEAD)
    if end < 0:
        _check_beginning(data, ended=ended)
        return None
    status, headers = _parse_head(data[:end])
    after = data[end + len(_BLANK_LINE) :]
    if status == 101:
        return Response(status, headers, b"", after)
    body = _parse_body(headers, after, ended=ended)
    if body is None:
        if ended:
            raise WireError("the connection ended within the answer")
        return None
    return Response(status, headers, body, b"")


def _check_beginning(data: bytes, *, ended: bool) -> None:
    if not data.startswith(_VERSION[: len(data)]):
        raise WireError("the answer is not HTTP/1")
    if len(data) >= MOST_HEAD:
        raise WireError(f"the head of the answer is longer than {MOST_HEAD} bytes")
    if ended:
        raise WireError("the connection ended within the answer" if data else "the connection ended without an answer")


def _parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    status_line, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = status_line.partition(" ")
    code = rest[:3]
    if version not in {"HTTP/1.1", "HTTP/1.0"} or not code.isdecimal() or len(code) != 3 or rest[3:4].strip():
        raise WireError("the answer has no valid status line")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise WireError("the answer has a malformed header line")
        name, value = name.lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return int(code), headers


def _parse_body(headers: dict[str, str], data: bytes, *, ended: bool) -> bytes | None:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return _parse_chunks(data)
    length = headers.get("content-length")
    if length is None:
        _check_size(len(data))
        return data if ended else None
    if not (length.isascii() and length.isdecimal()):
        raise WireError("the answer has an invalid Content-Length")
    _check_size(int(length))
    return data[: int(length)] if len(data) >= int(length) else None


def _parse_chunks(data: bytes) -> bytes | None:
    """Join the chunks (RFC 9112 section 7.1; extensions and trailers are skipped); None: more bytes are needed."""
    _check_size(len(data))
    body, at = b"", 0
    while (end := data.find(b"\r\n", at)) >= 0:
        digits = data[at:end].partition(b";")[0].strip()
        if not digits or digits.strip(b"0123456789abcdefABCDEF"):
            raise WireError("the answer has a malformed chunk")
        size = int(digits, 16)
        if size == 0:
            return body
        body += data[end + 2 : end + 2 + size]
        at = end + 2 + size + 2
    return None


def _check_size(size: int) -> None:
    if size > MOST_BODY:
        raise WireError(f"the body of the answer is longer than {MOST_BODY} bytes")
