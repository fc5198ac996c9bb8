"""Reading PROXY headers: whole, in pieces, and broken. And whatever else may stand there."""

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_gateway.proxy_header import MOST_BYTES, BadProxyHeader, ProxyHeader, read_proxy_header

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
TCP4 = socket.inet_aton("192.0.2.7") + socket.inet_aton("203.0.113.1") + struct.pack("!HH", 51_234, 443)
TCP6 = (
    socket.inet_pton(socket.AF_INET6, "2001:db8::7")
    + socket.inet_pton(socket.AF_INET6, "2001:db8::1")
    + struct.pack("!HH", 51_234, 443)
)
UNIX = b"/run/client".ljust(108, b"\0") + b"/run/server".ljust(108, b"\0")
TLV = b"\x04\x00\x05noise"


def v2(command: int, family: int, block: bytes, *, length: int | None = None) -> bytes:
    return SIGNATURE + struct.pack("!BBH", command, family, len(block) if length is None else length) + block


TOLD = {
    "v1 TCP4": (b"PROXY TCP4 192.0.2.7 203.0.113.1 51234 443\r\n", True, ("192.0.2.7", 51_234)),
    "v1 TCP6": (b"PROXY TCP6 2001:db8::7 2001:db8::1 51234 443\r\n", True, ("2001:db8::7", 51_234)),
    "v1 UNKNOWN": (b"PROXY UNKNOWN\r\n", False, None),
    "v1 UNKNOWN with anything": (b"PROXY UNKNOWN ffff::1 what ever 1 2 3\r\n", False, None),
    "v1 longest": (b"PROXY UNKNOWN " + b"f" * 91 + b"\r\n", False, None),
    "v1 port 0": (b"PROXY TCP4 192.0.2.7 203.0.113.1 0 65535\r\n", True, ("192.0.2.7", 0)),
    "v2 TCP4": (v2(0x21, 0x11, TCP4), True, ("192.0.2.7", 51_234)),
    "v2 TCP4 with TLV": (v2(0x21, 0x11, TCP4 + TLV), True, ("192.0.2.7", 51_234)),
    "v2 UDP4": (v2(0x21, 0x12, TCP4), True, ("192.0.2.7", 51_234)),
    "v2 TCP6": (v2(0x21, 0x21, TCP6), True, ("2001:db8::7", 51_234)),
    "v2 TCP6 with TLV": (v2(0x21, 0x21, TCP6 + TLV * 20), True, ("2001:db8::7", 51_234)),
    "v2 UNIX": (v2(0x21, 0x31, UNIX), True, None),
    "v2 UNSPEC": (v2(0x21, 0x00, b""), False, None),
    "v2 UNSPEC with bytes": (v2(0x21, 0x00, TLV), False, None),
    "v2 LOCAL": (v2(0x20, 0x00, b""), False, None),
    "v2 LOCAL with an address": (v2(0x20, 0x11, TCP4 + TLV), False, None),
    "v2 longest": (v2(0x21, 0x11, TCP4.ljust(4096, b"\0")), True, ("192.0.2.7", 51_234)),
}

BAD = {
    "http": b"GET / HTTP/1.1\r\n",
    "tls": b"\x16\x03\x01\x02\x00",
    "v1 other word": b"PROXIES",
    "lower case": b"proxy TCP4 192.0.2.7 203.0.113.1 1 2\r\n",
    "v1 other family": b"PROXY UDP4 192.0.2.7 203.0.113.1 1 2\r\n",
    "v1 no family": b"PROXY \r\n",
    "v1 two spaces": b"PROXY TCP4  192.0.2.7 203.0.113.1 1 2\r\n",
    "v1 trailing space": b"PROXY TCP4 192.0.2.7 203.0.113.1 1 2 \r\n",
    "v1 missing port": b"PROXY TCP4 192.0.2.7 203.0.113.1 1\r\n",
    "v1 wrong family": b"PROXY TCP4 2001:db8::7 2001:db8::1 1 2\r\n",
    "v1 wrong family of one": b"PROXY TCP6 2001:db8::7 203.0.113.1 1 2\r\n",
    "v1 zone": b"PROXY TCP6 fe80::1%eth0 2001:db8::1 1 2\r\n",
    "v1 name": b"PROXY TCP4 localhost 203.0.113.1 1 2\r\n",
    "v1 octal": b"PROXY TCP4 192.0.2.007 203.0.113.1 1 2\r\n",
    "v1 big port": b"PROXY TCP4 192.0.2.7 203.0.113.1 65536 2\r\n",
    "v1 port with zero": b"PROXY TCP4 192.0.2.7 203.0.113.1 01 2\r\n",
    "v1 port with sign": b"PROXY TCP4 192.0.2.7 203.0.113.1 +1 2\r\n",
    "v1 port of other digits": "PROXY TCP4 192.0.2.7 203.0.113.1 1² 2\r\n".encode("latin-1"),
    "v1 line feed only": b"PROXY TCP4 192.0.2.7 203.0.113.1 1 2\nGET / HTTP/1.1\r\n",
    "v1 too long": b"PROXY UNKNOWN " + b"f" * 92 + b"\r\n",
    "v1 without end": b"PROXY UNKNOWN " + b"f" * 93,
    "v2 version 1": v2(0x11, 0x11, TCP4),
    "v2 unknown command": v2(0x22, 0x11, TCP4),
    "v2 unknown family": v2(0x21, 0x41, TCP4),
    "v2 unknown transport": v2(0x21, 0x13, TCP4),
    "v2 short TCP4": v2(0x21, 0x11, TCP4[:-1]),
    "v2 short TCP6": v2(0x21, 0x21, TCP6[:-1]),
    "v2 short UNIX": v2(0x21, 0x31, UNIX[:-1]),
    "v2 empty TCP4": v2(0x21, 0x11, b""),
    "v2 too long": v2(0x21, 0x11, TCP4, length=4097),
    "v2 longest length": v2(0x20, 0x00, b"", length=65_535),
    "v2 broken signature": b"\r\n\r\n\x00\r\nQUIt",
}


@pytest.mark.parametrize(("header", "proxied", "client"), TOLD.values(), ids=TOLD)
@pytest.mark.parametrize("rest", [b"", b"GET / HTTP/1.1\r\n\r\n", SIGNATURE, b"PROXY UNKNOWN\r\n"])
def test_whole_header_is_read_and_what_follows_is_not(
    header: bytes, proxied: bool, client: tuple[str, int] | None, rest: bytes
) -> None:
    assert read_proxy_header(header + rest) == ProxyHeader(len(header), proxied, client)


@pytest.mark.parametrize(("header", "proxied", "client"), TOLD.values(), ids=TOLD)
def test_header_cut_anywhere_is_awaited(header: bytes, proxied: bool, client: tuple[str, int] | None) -> None:
    assert all(read_proxy_header(header[:end]) is None for end in range(len(header)))


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_breaks_the_rules_is_refused(data: bytes) -> None:
    with pytest.raises(BadProxyHeader):
        read_proxy_header(data)


def test_http_is_refused_at_its_first_byte() -> None:
    with pytest.raises(BadProxyHeader):
        read_proxy_header(b"G")


def test_oversized_length_is_refused_before_the_bytes_come() -> None:
    with pytest.raises(BadProxyHeader):
        read_proxy_header(v2(0x21, 0x11, b"", length=4097))


@given(st.sampled_from([b"", b"PROXY ", b"PROXY TCP4 ", SIGNATURE, SIGNATURE + b"\x21"]), st.binary(max_size=5_000))
def test_any_bytes_give_a_header_a_refusal_or_a_bounded_wait(start: bytes, rest: bytes) -> None:
    data = start + rest
    try:
        header = read_proxy_header(data)
    except BadProxyHeader:
        return
    if header is None:
        assert len(data) < MOST_BYTES
    else:
        assert 0 < header.length <= min(len(data), MOST_BYTES)


@given(st.ip_addresses(v=4), st.ip_addresses(v=6), st.integers(0, 65_535))
def test_both_versions_tell_the_same_address(v4: object, v6: object, port: int) -> None:
    for family, text, code, name in ((socket.AF_INET, str(v4), 0x11, "TCP4"), (socket.AF_INET6, str(v6), 0x21, "TCP6")):
        packed = socket.inet_pton(family, text)
        binary = read_proxy_header(v2(0x21, code, packed * 2 + struct.pack("!HH", port, 1)))
        line = read_proxy_header(f"PROXY {name} {text} {text} {port} 1\r\n".encode())
        assert binary is not None
        assert line is not None
        assert binary.client == line.client == (text, port)
