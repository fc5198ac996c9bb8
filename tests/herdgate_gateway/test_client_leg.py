"""uvicorn's WebSocket protocol, for a peer that nobody has vetted."""

import asyncio
import logging
import socket
import time
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from herdgate.asgi import Receive, Scope, Send
from herdgate_gateway.client_leg import client_leg_class
from herdgate_gateway.client_line import line_of
from tests.herdgate_gateway.gateways import frame, serve, until
from tests.wire import WAIT_S, Raw, handshake, raw

CAP = 100_000


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing at ERROR, whatever a client does."""
    yield
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def leg(**settings: Any) -> Any:
    return client_leg_class(**{"max_message_bytes": CAP, "max_fragment_bytes": CAP, "close_s": 0.3, **settings})


class App:
    """Collects messages, and takes them only when let."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.go.set()
        self.got: list[Any] = []
        self.protocol: Any = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        line = line_of(scope)
        assert line is not None
        self.line = line
        self.protocol = line._transport.get_protocol()
        await receive()
        await send({"type": "websocket.accept"})
        while True:
            await self.go.wait()
            message = await receive()
            if message["type"] == "websocket.disconnect":
                self.code = message["code"]
                return
            self.got.append(message.get("text") if message.get("bytes") is None else message["bytes"])


async def opened(client: Raw) -> None:
    assert (await client.head())[0] == 101


async def test_fragments_are_gathered_whatever_their_number() -> None:
    app = App()
    async with serve(app, ws=leg()) as port, raw(port, handshake("/ws")) as client:
        await opened(client)
        tiny = frame(0, b"", fin=False, mask=True)
        await client.send(frame(1, "ü".encode()[:1], fin=False, mask=True) + tiny * 20_000)
        await until(lambda: app.protocol is not None and not app.protocol._held, "parsed")
        assert len(app.protocol.frames) == 1
        await client.send(frame(0, "ü".encode()[1:], mask=True) + frame(2, b"a", fin=False, mask=True))
        await client.send(frame(0, b"b", mask=True) + frame(2, b"whole", mask=True))
        await until(lambda: len(app.got) == 3, "all messages")
        assert app.got == ["ü", b"ab", b"whole"]


@pytest.mark.parametrize(
    ("data", "settings"),
    [
        (frame(2, b"x" * 2001, mask=True), {"max_fragment_bytes": 2000}),
        (frame(2, b"x" * (CAP + 1), mask=True), {}),
        (frame(2, b"x" * 60_000, fin=False, mask=True) + frame(0, b"x" * 60_000, mask=True), {}),
    ],
)
async def test_a_frame_or_a_message_over_its_limit_ends_the_leg(data: bytes, settings: dict[str, int]) -> None:
    app = App()
    async with serve(app, ws=leg(**settings)) as port, raw(port, handshake("/ws")) as client:
        await opened(client)
        await client.send(data)
        opcode, payload = await client.frame()
        assert (opcode, payload[:2]) == (8, (1009).to_bytes(2, "big"))
        await until(lambda: getattr(app, "code", None) == 1009, "the app is told")
        assert not app.got


async def test_one_read_of_small_messages_is_taken_bit_by_bit() -> None:
    app = App()
    async with serve(app, ws=leg()) as port, raw(port, handshake("/ws")) as client:
        await opened(client)
        app.go.clear()
        await asyncio.sleep(0.05)
        await client.send(frame(2, b"x", mask=True) * 20_000)
        await until(lambda: app.protocol is not None and app.protocol.read_paused, "paused")
        waiting = app.protocol.queue.qsize()
        assert waiting <= 4096 // 7 + 2
        assert len(app.protocol._held) <= 262_144
        app.go.set()
        await until(lambda: len(app.got) == 20_000, "all of them in the end")


async def test_a_compressed_bomb_is_opened_one_slice_at_a_time() -> None:
    deflater = zlib.compressobj(9, wbits=-12)
    packed = deflater.compress(b"\0" * CAP) + deflater.flush(zlib.Z_SYNC_FLUSH)
    bomb = frame(2, packed[:-4], mask=True)
    bomb = bytes((bomb[0] | 0x40,)) + bomb[1:]
    shown = [("Sec-WebSocket-Extensions", "permessage-deflate; client_no_context_takeover; client_max_window_bits=12")]
    app = App()
    async with (
        serve(app, ws=leg(), ws_per_message_deflate=True) as port,
        raw(port, handshake("/ws", headers=shown)) as client,
    ):
        await opened(client)
        app.go.clear()
        await asyncio.sleep(0.05)
        await client.send(bomb * 500)
        await until(lambda: app.protocol.read_paused, "paused")
        assert app.protocol.queue.qsize() <= 4096 // len(bomb) + 2
        assert len(bomb) * 500 > 3 * 4096
        app.go.set()
        await until(lambda: len(app.got) == 500, "all of them in the end")


async def test_a_client_that_pings_and_does_not_read_gets_no_pile_of_pongs() -> None:
    app = App()
    async with serve(app, ws=leg()) as port, raw(port, handshake("/ws")) as client:
        await opened(client)
        client._reader._transport.pause_reading()  # type: ignore[attr-defined]
        await client.send(frame(1, b"start", mask=True))
        for _ in range(200):
            await client.send(frame(9, b"x" * 100, mask=True) * 1000)
        await client.send(frame(1, b"end", mask=True))
        await until(lambda: app.got == ["start", "end"], "all read", within_s=30)
        assert app.protocol.transport.get_write_buffer_size() < 300_000


async def test_pings_are_answered() -> None:
    async with serve(App(), ws=leg()) as port, raw(port, handshake("/ws")) as client:
        await opened(client)
        await client.send(frame(9, b"hi", mask=True))
        assert await client.frame() == (10, b"hi")


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\n\r\nhello",
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"X-Long: " + b"x" * 9000 + b"\r\n\r\n",
        b"X-Many: x\r\n" * 200 + b"\r\n",
    ],
)
async def test_a_handshake_the_library_cannot_read_is_answered(head: bytes) -> None:
    async with serve(App(), ws=leg()) as port, raw(port, handshake("/ws")[:-2] + head) as client:
        answer = await client.answer()
        assert answer.status == 400
        assert b"cannot be read" in answer.body


async def test_the_client_has_close_s_to_answer_a_close() -> None:
    async def closes(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": 4000})

    async with serve(closes, ws=leg()) as port, raw(port, handshake("/ws")) as client:
        await opened(client)
        assert (await client.frame())[0] == 8
        start = time.monotonic()
        assert await client.read() == b""
        assert 0.2 < time.monotonic() - start < 8


async def test_a_line_is_cut_when_its_time_is_up_and_not_before() -> None:
    app = App()
    async with serve(app, ws=leg()) as port, raw(port, handshake("/ws")) as client:
        await opened(client)
        start = time.monotonic()
        ending = asyncio.ensure_future(app.line.end(0.3))
        assert await client.read() == b""
        await ending
        assert 0.2 < time.monotonic() - start < 8


async def test_a_line_that_is_gone_needs_no_waiting() -> None:
    app = App()
    async with serve(app, ws=leg()) as port:
        async with raw(port, handshake("/ws")) as client:
            await opened(client)
            ending = asyncio.ensure_future(app.line.end(WAIT_S))
            client.reset()
        await asyncio.wait_for(ending, 8)


async def test_the_connection_is_kept_alive_and_small_messages_leave_at_once() -> None:
    app = App()
    async with serve(app, ws=leg()) as port, raw(port, handshake("/ws")) as client:
        await opened(client)
        await until(lambda: app.protocol is not None, "served")
        sock = app.protocol.transport.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_server_without_the_extension_offers_no_line() -> None:
    assert line_of({"type": "websocket"}) is None
    assert line_of({"type": "websocket", "extensions": None}) is None


async def test_a_message_in_fragments_reaches_the_app_as_bytes() -> None:
    app = App()
    async with serve(app, ws=leg()) as port, raw(port, handshake("/ws")) as client:
        await opened(client)
        await client.send(frame(2, b"a", fin=False, mask=True) + frame(0, b"b", mask=True))
        await until(lambda: len(app.got) == 1, "the message")
        assert type(app.got[0]) is bytes


@pytest.mark.parametrize("answers", [True, False])
async def test_text_that_is_no_utf_8_ends_the_leg_and_is_no_error(answers: bool) -> None:
    async with serve(App(), ws=leg()) as port, raw(port, handshake("/ws")) as client:
        await opened(client)
        await client.send(frame(1, b"\xff", fin=False, mask=True) + frame(0, mask=True) + frame(1, b"more", mask=True))
        assert await client.frame() == (8, b"\x03\xefnot UTF-8")
        if answers:
            await client.send(frame(8, b"\x03\xef", mask=True))
        assert await client.read() == b""
