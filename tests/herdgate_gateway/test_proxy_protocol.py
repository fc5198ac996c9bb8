"""The PROXY header on a real uvicorn: believed from trusted peers, required of them, and read from nobody else."""

import asyncio
import logging
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from herdgate import AdmissionMiddleware, ClientLimits, ConfigurationError, Limits
from herdgate.asgi import ASGIApp, Receive, Scope, Send
from herdgate_gateway import proxy_protocol
from herdgate_gateway.proxy_protocol import proxy_protocol_class
from tests.apps import answer
from tests.herdgate_gateway.in_thread import free_listener, serving
from tests.herdgate_gateway.test_proxy_header import BAD, TCP4, TCP6, TLV, UNIX, v2
from tests.servers import IMPLEMENTATIONS
from tests.wire import WAIT_S, handshake, raw

LOOPBACK = ["127.0.0.0/8", "::1"]
NOBODY_HERE = ["192.0.2.0/24"]
REQUEST = b"GET /who HTTP/1.1\r\nHost: x\r\n\r\n"


async def who(scope: Scope, receive: Receive, send: Send) -> None:
    """Says who its client is, in both protocols."""
    client = scope["client"] and list(scope["client"])
    if scope["type"] == "http":
        await answer(send, {"client": client})
        return
    assert (await receive())["type"] == "websocket.connect"
    await send({"type": "websocket.accept", "headers": [(b"x-client", repr(client).encode())]})
    while (await receive())["type"] != "websocket.disconnect":
        pass


@contextmanager
def proxied(
    *listeners: socket.socket, app: ASGIApp = who, trusted: Sequence[str] = LOOPBACK, **options: Any
) -> Iterator[int]:
    with serving(app, *listeners, http=proxy_protocol_class(HttpToolsProtocol, trusted), **options) as port:
        yield port


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with proxied() as port:
        yield port


async def told(port: int, header: bytes) -> Any:
    async with raw(port, header + REQUEST) as client:
        return (await client.answer()).json()["client"]


TOLD = {
    "v1 TCP4": (b"PROXY TCP4 192.0.2.7 203.0.113.1 51234 443\r\n", ["192.0.2.7", 51_234]),
    "v1 TCP6": (b"PROXY TCP6 2001:db8::7 2001:db8::1 51234 443\r\n", ["2001:db8::7", 51_234]),
    "v2 TCP4": (v2(0x21, 0x11, TCP4 + TLV), ["192.0.2.7", 51_234]),
    "v2 TCP6": (v2(0x21, 0x21, TCP6 + TLV), ["2001:db8::7", 51_234]),
    "v2 UNIX": (v2(0x21, 0x31, UNIX), None),
}


@pytest.mark.parametrize(("header", "client"), TOLD.values(), ids=TOLD)
async def test_http_request_has_the_told_client(port: int, header: bytes, client: list[object] | None) -> None:
    assert await told(port, header) == client


@pytest.mark.parametrize("header", [b"PROXY UNKNOWN\r\n", v2(0x20, 0x00, b""), v2(0x21, 0x00, TLV)])
async def test_header_of_the_proxy_itself_leaves_its_own_address(port: int, header: bytes) -> None:
    async with raw(port, header + REQUEST) as client:
        assert (await client.answer()).json()["client"][0] == "127.0.0.1"


async def test_every_request_of_a_connection_has_the_told_client(port: int) -> None:
    async with raw(port, TOLD["v2 TCP4"][0] + REQUEST) as client:
        first = await client.answer()
        await client.send(REQUEST)
        assert first.json() == (await client.answer()).json() == {"client": ["192.0.2.7", 51_234]}


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("ws", IMPLEMENTATIONS)
@pytest.mark.parametrize("header", ["v1 TCP4", "v2 TCP6", "v2 UNIX"])
async def test_handshake_has_the_told_client(ws: str, loop: str, header: str) -> None:
    data, client = TOLD[header]
    with proxied(ws=ws, loop=loop) as port:
        async with raw(port, data + handshake("/")) as connection:
            status, headers = await connection.head()
    assert (status, headers["x-client"]) == (101, repr(client))


@pytest.mark.parametrize("header", [TOLD["v1 TCP6"][0], TOLD["v2 TCP6"][0]], ids=["v1", "v2"])
async def test_header_may_be_split_at_every_byte(port: int, header: bytes) -> None:
    async def split(data: bytes, at: int) -> int:
        async with raw(port, data[:at]) as client:
            await asyncio.sleep(0.05)  # awaits nothing: keeps the kernel from joining the pieces
            await client.send(data[at:])
            answered = await client.answer()
            assert answered.json()["client"] == ["2001:db8::7", 51_234]
            return answered.status

    data = header + REQUEST
    assert set(await asyncio.gather(*(split(data, at) for at in range(1, len(header) + 3)))) == {200}


async def test_header_may_come_byte_by_byte(port: int) -> None:
    async with raw(port) as client:
        for byte in TOLD["v1 TCP4"][0] + REQUEST:
            await client.send(bytes((byte,)))
            await asyncio.sleep(0)
        assert (await client.answer()).json() == {"client": ["192.0.2.7", 51_234]}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
async def test_trusted_peer_without_a_good_header_is_closed_unanswered(port: int, data: bytes) -> None:
    async with raw(port, data) as client:
        with suppress(ConnectionResetError):  # closed with bytes unread
            assert await client.read() == b""


async def test_second_header_is_no_header(port: int) -> None:
    async with raw(port, TOLD["v1 TCP4"][0] + TOLD["v1 TCP6"][0] + REQUEST) as client:
        assert (await client.head())[0] == 400


@pytest.mark.parametrize("header", [TOLD["v1 TCP4"][0], TOLD["v2 TCP4"][0]], ids=["v1", "v2"])
async def test_untrusted_peer_is_not_believed(header: bytes) -> None:
    with proxied(trusted=NOBODY_HERE) as port:
        async with raw(port, header + REQUEST) as client:
            assert (await client.head())[0] == 400
        async with raw(port, REQUEST) as client:
            assert (await client.answer()).json()["client"][0] == "127.0.0.1"


async def test_header_that_does_not_come_is_waited_for_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(proxy_protocol, "HEADER_S", 0.2)
    with proxied() as port:
        async with raw(port) as silent, raw(port, b"PROXY TCP4 192") as slow, raw(port, TOLD["v1 TCP4"][0]) as whole:
            assert await silent.read() == await slow.read() == b""
            await whole.send(REQUEST)  # its header was there in time, and the rest has no deadline here
            assert (await whole.answer()).status == 200
    assert [record.levelname for record in caplog.records if "PROXY" in record.message] == ["WARNING"]


async def test_probe_that_connects_and_leaves_is_not_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(proxy_protocol, "HEADER_S", 0.2)
    with caplog.at_level(logging.INFO, "herdgate"), proxied() as port, proxied() as slower:
        for _ in range(3):
            async with raw(port):
                pass
        assert await told(port, TOLD["v1 TCP4"][0]) == ["192.0.2.7", 51_234]
        async with raw(slower) as silent:  # its deadline is behind all of those
            assert await silent.read() == b""
    assert len([record for record in caplog.records if record.name.startswith("herdgate")]) == 1


async def test_server_ends_at_once_while_headers_are_awaited() -> None:
    with proxied(timeout_graceful_shutdown=30) as port:
        connection = await asyncio.open_connection("127.0.0.1", port)
        assert await told(port, TOLD["v1 TCP4"][0])
    assert await asyncio.wait_for(connection[0].read(), WAIT_S) == b""
    connection[1].transport.abort()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_peer_on_a_unix_socket_is_trusted(tmp_path: Path, loop: str) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        with proxied(listener, trusted=[], loop=loop):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(TOLD["v2 TCP4"][0] + handshake("/"))
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WAIT_S)
            writer.transport.abort()
    assert b"('192.0.2.7', 51234)" in head or b"['192.0.2.7', 51234]" in head


async def test_trusted_ipv6_peer_is_trusted() -> None:
    with proxied(free_listener(socket.AF_INET6)) as port:
        reader, writer = await asyncio.open_connection("::1", port)
        writer.write(TOLD["v1 TCP4"][0] + REQUEST)
        assert b"200 OK" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WAIT_S)
        writer.transport.abort()


async def test_ipv4_peer_of_a_dual_stack_listener_is_trusted_by_its_ipv4_network() -> None:
    listener = socket.socket(socket.AF_INET6)
    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    listener.bind(("::", 0))
    with proxied(listener, trusted=["127.0.0.0/8"]) as port:
        assert await told(port, TOLD["v1 TCP4"][0]) == ["192.0.2.7", 51_234]


@pytest.mark.parametrize("ws", IMPLEMENTATIONS)
async def test_limits_per_client_count_the_told_address(ws: str) -> None:
    limits = Limits(rate=None, client=ClientLimits(rate=None, open=1), anonymous=ClientLimits(rate=None, open=1))
    header = partial("PROXY TCP4 {} 203.0.113.1 1 443\r\n".format)

    async def status(client: Any) -> int:
        return int((await client.head())[0])

    def knock(port: int, address: str) -> Any:
        return raw(port, header(address).encode() + handshake("/"))

    with proxied(app=AdmissionMiddleware(who, limits, max_wait_s=0), ws=ws) as port:
        async with knock(port, "192.0.2.1") as first, knock(port, "192.0.2.2") as other:
            assert await status(first) == await status(other) == 101
            async with knock(port, "192.0.2.1") as second:
                assert await status(second) == 429


def test_two_classes_keep_their_own_trust() -> None:
    one, other = (proxy_protocol_class(HttpToolsProtocol, [network]) for network in ("10.0.0.0/8", "192.0.2.0/24"))
    assert one is not other
    assert issubclass(one, HttpToolsProtocol)


def test_bad_network_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="trusted_proxies"):
        proxy_protocol_class(HttpToolsProtocol, ["10.0.0.1/8"])
