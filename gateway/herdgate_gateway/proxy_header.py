"""The PROXY protocol header, versions 1 and 2: what a proxy says of a connection ahead of its first byte.

Pure: bytes in, a header out. It reads only what is whole, says early that something is no header, and never needs
more than `MOST_BYTES`. Who may send one is not decided here: a header is as true as the peer that wrote it.

Source: https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt, section 2.
"""

import re
import struct
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple

__all__ = ["MOST_BYTES", "BadProxyHeader", "ProxyHeader", "read_proxy_header"]

Endpoint = tuple[str, int]

MOST_V1 = 107  # bytes with CR LF: the longest line that version 1 can write
MOST_V2 = 4096  # bytes after the first 16: addresses and TLVs; the text asks for at least 536 in all
MOST_BYTES: Final = 16 + MOST_V2
"""No header is longer."""

_V1 = b"PROXY "
_V2 = b"\r\n\r\n\x00\r\nQUIT\n"
_ADDRESSES = {"TCP4": IPv4Address, "TCP6": IPv6Address}
_PORT = re.compile(r"0|[1-9][0-9]{0,4}", re.ASCII)
_UNIX_LENGTH = 216
_UNSPECIFIED = 0x00
_IPV4, _IPV6, _UNIX = (0x11, 0x12), (0x21, 0x22), (0x31, 0x32)  # over streams, over datagrams


class BadProxyHeader(Exception):  # noqa: N818 - says what it is
    """These bytes are not, and cannot become, a PROXY header."""


class ProxyHeader(NamedTuple):
    """A whole header.

    Attributes:
        length: bytes it takes; the client's own follow.
        proxied: False: the proxy speaks for itself (LOCAL, UNKNOWN), and the address of the connection holds.
        client: address and port of whoever is behind the proxy; None where that is a Unix socket.
    """

    length: int
    proxied: bool
    client: Endpoint | None


def read_proxy_header(data: bytes | bytearray) -> ProxyHeader | None:
    """The header at the start of `data`; None while it is not whole.

    Raises:
        BadProxyHeader: there is none, or it breaks the rules.
    """
    if data[:1] == _V1[:1]:
        return _read_v1(data)
    return _read_v2(data)


def _read_v1(data: bytes | bytearray) -> ProxyHeader | None:
    if not _V1.startswith(data[: len(_V1)]):
        raise BadProxyHeader("no PROXY header")
    end = data.find(b"\r\n", 0, MOST_V1)
    if end < 0:
        if len(data) >= MOST_V1:
            raise BadProxyHeader(f"no end of line within {MOST_V1} bytes")
        return None
    words = data[len(_V1) : end].decode("latin-1").split(" ")
    length = end + 2
    if words[0] == "UNKNOWN":  # whatever follows is to be ignored
        return ProxyHeader(length, proxied=False, client=None)
    if len(words) != 5 or words[0] not in _ADDRESSES:
        raise BadProxyHeader("neither TCP4, TCP6 nor UNKNOWN with two addresses and two ports")
    family, source, destination, source_port, destination_port = words
    _read_endpoint(family, destination, destination_port)
    return ProxyHeader(length, proxied=True, client=_read_endpoint(family, source, source_port))


def _read_endpoint(family: str, address: str, port: str) -> Endpoint:
    if not _PORT.fullmatch(port) or int(port) > 65_535:
        raise BadProxyHeader("no port from 0 to 65535")
    try:
        if "%" in address:  # a zone means nothing on another machine
            raise ValueError(address)
        return str(_ADDRESSES[family](address)), int(port)
    except ValueError:
        raise BadProxyHeader(f"no {family} address") from None


def _read_v2(data: bytes | bytearray) -> ProxyHeader | None:
    if not _V2.startswith(data[: len(_V2)]):
        raise BadProxyHeader("no PROXY header")
    if len(data) < 16:
        return None
    version, family, rest = struct.unpack_from("!BBH", data, 12)
    if version not in (0x20, 0x21):
        raise BadProxyHeader("an unknown version or command")
    if rest > MOST_V2:
        raise BadProxyHeader(f"{rest} bytes announced, more than {MOST_V2}")
    if len(data) < 16 + rest:
        return None
    if version == 0x20:  # LOCAL: a health check of the proxy's own; family and addresses are to be ignored
        return ProxyHeader(16 + rest, proxied=False, client=None)
    return _read_addresses(family, bytes(data[16 : 16 + rest]))


def _read_addresses(family: int, block: bytes) -> ProxyHeader:
    """The addresses at the start of `block`; the TLVs behind them are skipped."""
    length = 16 + len(block)
    if family == _UNSPECIFIED:
        return ProxyHeader(length, proxied=False, client=None)
    if family in _IPV4 and len(block) >= 12:
        return ProxyHeader(length, True, (str(IPv4Address(block[:4])), *struct.unpack_from("!H", block, 8)))
    if family in _IPV6 and len(block) >= 36:
        return ProxyHeader(length, True, (str(IPv6Address(block[:16])), *struct.unpack_from("!H", block, 32)))
    if family in _UNIX and len(block) >= _UNIX_LENGTH:
        return ProxyHeader(length, proxied=True, client=None)
    raise BadProxyHeader("an unknown address family, or fewer bytes than its addresses take")
