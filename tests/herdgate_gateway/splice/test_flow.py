"""Backpressure and caps: what one leg does not take, the other is not asked for; what is too much ends both."""

import asyncio
import logging
import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed

from herdgate_gateway.relay import RelaySettings
from tests.herdgate_gateway.gateways import Visitor, frame, open_files, scripted_worker, until
from tests.herdgate_gateway.splice.fronts import splice
from tests.herdgate_gateway.splice.scripts import Listener, close_payload, read_frames
from tests.wire import WAIT_S, handshake, open_socket, raw

MIB = 1 << 20
KERNEL = 16 * MIB  # what the socket buffers of both connections may hold on top of ours


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing above INFO, whatever a client or a worker does."""
    yield
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


class Fountain:
    """A worker that sends numbered messages of 64 KiB as fast as they are taken."""

    sent = 0
    got = b""

    async def __call__(self, visit: Visitor) -> None:
        await visit.accept()
        reading = asyncio.ensure_future(self._read(visit))
        try:
            while True:
                await visit.send(frame(2, self.sent.to_bytes(4, "big") + b"x" * 65_532))
                self.sent += 1
        finally:
            reading.cancel()

    async def _read(self, visit: Visitor) -> None:
        while data := await visit.reader.read(1000):
            self.got += data


class Drain:
    """A client that sends as fast as it may."""

    sent = 0

    async def __call__(self, port: int) -> None:
        async with open_socket(port, "/ws") as client:
            with suppress(ConnectionClosed):
                while True:
                    await client.send(b"x" * 65_536)
                    self.sent += 1
            self.code = client.close_code


async def settled(count: Fountain | Drain) -> int:
    """Wait until it goes no further."""
    seen, since = -1, time.monotonic()
    while time.monotonic() - since < 0.4:
        if count.sent != seen:
            seen, since = count.sent, time.monotonic()
        await asyncio.sleep(0.02)
    return seen


async def test_a_client_that_does_not_read_stops_its_worker_and_loses_nothing() -> None:
    fountain = Fountain()
    async with (
        scripted_worker(fountain) as worker,
        splice([worker.url]) as front,
        open_socket(front.port, "/ws") as stalled,
    ):
        stalled.transport.pause_reading()
        stopped = await settled(fountain)
        assert stopped * 65_536 < KERNEL
        assert front.joint._client.transport.get_write_buffer_size() < MIB
        stalled.transport.resume_reading()
        for number in range(stopped + 50):
            message = await asyncio.wait_for(stalled.recv(), WAIT_S)
            assert isinstance(message, bytes)
            assert int.from_bytes(message[:4], "big") == number
        stalled.transport.abort()
        await front.is_idle()


def numbered(number: int) -> bytes:
    return frame(2, number.to_bytes(4, "big") * 25)


async def test_short_messages_come_behind_those_that_were_not_taken() -> None:
    loop, visits = asyncio.get_running_loop(), asyncio.Queue[Visitor]()

    async def listens(visit: Visitor) -> None:
        await visit.accept()
        visits.put_nowait(visit)
        await visit.reader.read()

    async with scripted_worker(listens) as worker, splice([worker.url]) as front:
        with socket.socket() as client:
            client.setblocking(False)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await loop.sock_connect(client, ("127.0.0.1", front.port))
            await loop.sock_sendall(client, handshake("/ws"))
            got = b""
            while b"\r\n\r\n" not in got:
                got += await loop.sock_recv(client, 1)
            visit, leg, sent = await visits.get(), (await front.has_joined())._client.transport, 0
            leg.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            while not leg.get_write_buffer_size():
                await visit.send(numbered(sent))
                await asyncio.sleep(0)  # one at a time, or much more would wait than has to
                sent += 1
            got = b""
            for _ in range(1000):
                await visit.send(numbered(sent))
                sent += 1
                got += await loop.sock_recv(client, 102)
            expected = b"".join(map(numbered, range(sent)))
            while len(got) < len(expected):
                got += await asyncio.wait_for(loop.sock_recv(client, 65_536), WAIT_S)
            assert got == expected
        await front.is_idle()


async def test_a_worker_that_does_not_read_stops_its_client_and_is_given_up_after_stall_s() -> None:
    async def deaf(visit: Visitor) -> None:
        await visit.accept()
        visit.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(WAIT_S)

    drain = Drain()
    settings = RelaySettings(stall_s=1.5, close_s=0.3)
    async with scripted_worker(deaf) as worker, splice([worker.url], settings=settings) as front:
        start = time.monotonic()
        pouring = asyncio.ensure_future(drain(front.port))
        stopped = await settled(drain)
        assert stopped * 65_536 < KERNEL
        assert len(front.relay.joints) == 1
        await asyncio.wait_for(pouring, WAIT_S)
        assert 1.5 <= time.monotonic() - start < 9
        assert drain.code == 1014
        await front.is_idle()


async def test_a_client_that_never_reads_again_is_gone_after_stall_s_and_close_s() -> None:
    settings = RelaySettings(stall_s=0.5, close_s=0.3)
    async with scripted_worker(Fountain()) as worker, splice([worker.url], settings=settings) as front:
        before = open_files()
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            client._reader._transport.pause_reading()  # type: ignore[attr-defined]
            start = time.monotonic()
            await front.has_joined()
            await front.is_idle()
            assert time.monotonic() - start < 8
        await until(lambda: open_files() <= before, "files")


async def test_a_client_that_reads_again_in_time_is_told_why_it_is_closed() -> None:
    fountain = Fountain()
    settings = RelaySettings(stall_s=0.5, close_s=1.5)
    async with scripted_worker(fountain) as worker, splice([worker.url], settings=settings) as front:
        async with open_socket(front.port, "/ws") as client:
            client.transport.pause_reading()
            await until(lambda: len(fountain.got) >= 4, "the worker is told")
            client.transport.resume_reading()
            with suppress(ConnectionClosed):
                while await asyncio.wait_for(client.recv(), WAIT_S):
                    pass
            assert (client.close_code, client.close_reason) == (1008, "does not read")
        await front.is_idle()


async def test_a_slow_client_that_reads_on_is_not_stalled() -> None:
    fountain = Fountain()
    settings = RelaySettings(stall_s=0.6, close_s=0.3)
    async with scripted_worker(fountain) as worker, splice([worker.url], settings=settings) as front:
        async with open_socket(front.port, "/ws") as client:
            end = time.monotonic() + 2
            while time.monotonic() < end:
                for _ in range(40):
                    await asyncio.wait_for(client.recv(), WAIT_S)
                await asyncio.sleep(0.05)
            assert len(front.relay.joints) == 1
            client.transport.abort()
        await front.is_idle()


@pytest.mark.parametrize("pieces", [1, 100])
async def test_a_message_of_the_client_over_the_cap_ends_both_legs(pieces: int) -> None:
    settings = RelaySettings(max_message_bytes=100_000, close_s=0.5)
    listener = Listener()
    size = 100_001 // pieces + 1
    async with scripted_worker(listener) as worker, splice([worker.url], settings=settings) as front:
        async with open_socket(front.port, "/ws") as client:
            await client.send(b"x" * 100_000)
            with suppress(ConnectionClosed):
                await client.send([b"x" * size] * pieces)
                await asyncio.wait_for(client.recv(), WAIT_S)
            assert (client.close_code, client.close_reason) == (1009, "message too big")
        await front.is_idle()
        await asyncio.wait_for(listener.ended.wait(), WAIT_S)
    first, *fragments, last = listener.frames()
    assert first == (2, b"x" * 100_000)
    assert sum(len(payload) for _, payload in fragments) <= 100_000
    assert last == (8, close_payload(1001, "the client broke a limit"))


async def test_a_client_that_goes_on_with_what_is_too_much_is_read_until_its_close() -> None:
    settings = RelaySettings(max_message_bytes=1000, close_s=30)
    too_much = frame(2, b"x" * (4 * MIB), mask=True)
    listener = Listener()
    async with scripted_worker(listener) as worker, splice([worker.url], settings=settings) as front:
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            await client.send(too_much)
            await client.send(frame(8, close_payload(1009), mask=True))
            assert await read_frames(client) == [(8, close_payload(1009, "message too big"))]
        await until(lambda: bool(listener.got), "the worker is told")
    assert listener.frames() == [(8, close_payload(1001, "the client broke a limit"))]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(frame(2, b"x" * 100_001), id="message"),
        pytest.param(frame(2, b"x" * 20_001), id="frame"),
        pytest.param(frame(2, b"x" * 20_000, fin=False) + frame(0, b"x" * 20_000, fin=False) * 5, id="fragments"),
        pytest.param(frame(2, b"x", fin=False) + frame(0, b"x", fin=False) * 100_000, id="tiny fragments"),
    ],
)
async def test_a_worker_s_message_over_the_cap_ends_both_legs(data: bytes) -> None:
    settings = RelaySettings(max_message_bytes=100_000, max_fragment_bytes=20_000, close_s=0.5)
    listener = Listener(first=data)
    async with scripted_worker(listener) as worker, splice([worker.url], settings=settings) as front:
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            *fragments, close = await read_frames(client)
            assert sum(len(payload) for _, payload in fragments) <= 100_000
            assert close == (8, close_payload(1014))
        await front.is_idle()
        await asyncio.wait_for(listener.ended.wait(), WAIT_S)
    assert listener.frames() == [(8, close_payload(1009, "message too big"))]


async def test_a_message_in_many_empty_fragments_is_one_message() -> None:
    whole = frame(1, b"a", fin=False) + frame(0, b"", fin=False) * 50_000 + frame(0, b"b") + frame(1, b"next")
    settings = RelaySettings(max_message_bytes=4)
    async with (
        scripted_worker(Listener(first=whole)) as worker,
        splice([worker.url], settings=settings) as front,
        raw(front.port, handshake("/ws")) as client,
    ):
        await client.head()
        assert await asyncio.wait_for(client._reader.readexactly(len(whole)), WAIT_S) == whole


async def test_a_client_that_breaks_a_cap_while_its_worker_talks_is_nobody_s_error() -> None:
    settings = RelaySettings(max_message_bytes=100_000, close_s=0.3)
    async with scripted_worker(Fountain()) as worker, splice([worker.url], settings=settings) as front:
        for _ in range(20):
            async with open_socket(front.port, "/ws") as client:
                for _ in range(5):
                    await client.recv()
                await client.send(b"x" * 100_001)
                with suppress(ConnectionClosed):
                    while await asyncio.wait_for(client.recv(), WAIT_S):
                        pass
                assert client.close_code == 1009
        await front.is_idle()
