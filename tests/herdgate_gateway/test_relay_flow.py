"""Backpressure and caps: what one leg does not take, the other is not asked for; what is too much ends both."""

import asyncio
import gc
import logging
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed

from herdgate_gateway.relay import RelaySettings
from herdgate_gateway.worker_leg import WorkerLeg
from tests.herdgate_gateway.gateways import (
    CLIENT_LEGS,
    MESSAGE_LEGS,
    Visitor,
    echo_worker,
    frame,
    gateway,
    open_files,
    scripted_worker,
    through,
    until,
)
from tests.wire import WAIT_S, handshake, open_socket, raw

pytestmark = pytest.mark.usefixtures("both_relays")

MIB = 1 << 20
KERNEL = 16 * MIB  # what the socket buffers of both connections may hold on top of ours


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing at ERROR, whatever a client or a worker does."""
    yield
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


class Fountain:
    """A worker that sends numbered messages of 64 KiB as fast as they are taken."""

    sent = 0

    async def __call__(self, visit: Visitor) -> None:
        await visit.accept()
        while True:
            await visit.send(frame(2, self.sent.to_bytes(4, "big") + b"x" * 65_532))
            self.sent += 1


async def settled(count: "Fountain | Drain") -> int:
    """Wait until it goes no further."""
    seen, since = -1, time.monotonic()
    while time.monotonic() - since < 0.4:
        if count.sent != seen:
            seen, since = count.sent, time.monotonic()
        await asyncio.sleep(0.02)
    return seen


@pytest.mark.parametrize("leg", CLIENT_LEGS)
async def test_case_6_17_a_client_that_does_not_read_stops_its_worker_and_nobody_else(leg: str) -> None:
    fountain = Fountain()
    async with (
        scripted_worker(fountain) as worker,
        echo_worker() as other,
        gateway([worker.url], leg=leg) as front,
        gateway([other.url], leg=leg) as beside,
        open_socket(front.port, "/ws") as stalled,
    ):
        stalled.transport.pause_reading()
        stopped = await settled(fountain)
        assert stopped * 65_536 < KERNEL + 2 * MIB
        async with open_socket(beside.port, "/ws") as client:
            for _ in range(20):
                start = time.monotonic()
                await client.send("x")
                await client.recv()
                assert time.monotonic() - start < 0.5
        assert await settled(fountain) == stopped
        stalled.transport.resume_reading()
        for number in range(stopped + 50):
            message = await asyncio.wait_for(stalled.recv(), WAIT_S)
            assert isinstance(message, bytes)
            assert int.from_bytes(message[:4], "big") == number
        stalled.transport.abort()


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


@pytest.mark.parametrize("leg", CLIENT_LEGS)
async def test_a_worker_that_does_not_read_stops_its_client_and_is_given_up_after_stall_s(leg: str) -> None:
    async def deaf(visit: Visitor) -> None:
        await visit.accept()
        visit.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(WAIT_S)

    drain = Drain()
    settings = RelaySettings(stall_s=1.5, close_s=0.3)
    async with scripted_worker(deaf) as worker, gateway([worker.url], leg=leg, settings=settings) as front:
        start = time.monotonic()
        pouring = asyncio.ensure_future(drain(front.port))
        stopped = await settled(drain)
        assert stopped * 65_536 < KERNEL + 2 * MIB
        assert front.gate.snapshot().open == 1
        await asyncio.wait_for(pouring, WAIT_S)
        assert 1.5 <= time.monotonic() - start < 9
        assert drain.code == 1014
        await front.is_idle()


async def test_case_6_17_a_client_that_never_reads_again_is_gone_after_stall_s_and_close_s() -> None:
    fountain, before = Fountain(), 0
    settings = RelaySettings(stall_s=0.5, close_s=0.3)
    async with scripted_worker(fountain) as worker, gateway([worker.url], settings=settings) as front:
        before = open_files()
        async with raw(front.port, handshake("/ws")) as client:
            assert (await client.head())[0] == 101
            client._reader._transport.pause_reading()  # type: ignore[attr-defined]
            await until(lambda: front.gate.snapshot().open == 1, "open")
            start = time.monotonic()
            await front.is_idle()
            assert time.monotonic() - start < 8
            await until(lambda: open_files() <= before + 2, "only the two ends of the test's own socket are left")
        await until(lambda: open_files() <= before, "and nothing at all")


@pytest.mark.parametrize("leg", CLIENT_LEGS)
async def test_a_client_that_reads_again_in_time_is_told_why_it_is_closed(leg: str) -> None:
    settings = RelaySettings(stall_s=0.5, close_s=1.5)
    async with scripted_worker(Fountain()) as worker, gateway([worker.url], leg=leg, settings=settings) as front:
        async with open_socket(front.port, "/ws") as client:
            client.transport.pause_reading()
            await until(lambda: bool(worker.visits), "there")
            visit = worker.visits[0]
            got = bytearray()

            async def told() -> None:
                while data := await visit.reader.read(1000):
                    got.extend(data)

            telling = asyncio.ensure_future(told())
            await until(lambda: len(got) >= 4, "the worker is told")
            client.transport.resume_reading()
            with suppress(ConnectionClosed):
                while await asyncio.wait_for(client.recv(), WAIT_S):
                    pass
            assert (client.close_code, client.close_reason) == (1008, "does not read")
            telling.cancel()
        assert _unmasked_close(bytes(got)) == 1001


def _unmasked_close(data: bytes) -> int:
    """The code in a masked close frame."""
    assert data[0] == 0x88
    mask = data[2:6]
    return int.from_bytes(bytes((data[6] ^ mask[0], data[7] ^ mask[1])), "big")


@pytest.mark.parametrize("leg", CLIENT_LEGS)
@pytest.mark.parametrize("pieces", [1, 100])
async def test_a_message_of_the_client_over_the_cap_ends_both_legs(leg: str, pieces: int) -> None:
    settings = RelaySettings(max_message_bytes=100_000)
    size = 100_001 // pieces + 1
    async with echo_worker() as worker, gateway([worker.url], leg=leg, settings=settings) as front:
        async with open_socket(front.port, "/ws") as client:
            await client.send(b"x" * 100_000)
            assert len(await client.recv()) == 100_000
            with suppress(ConnectionClosed):
                await client.send([b"x" * size] * pieces)
                await asyncio.wait_for(client.recv(), WAIT_S)
            assert client.close_code == 1009
        await front.is_idle()
        await until(lambda: len(worker.ended) == 1, "the worker is told")


async def test_a_cap_below_the_server_s_holds_for_text_in_bytes() -> None:
    async with (
        echo_worker() as worker,
        through(worker.url, RelaySettings(max_message_bytes=10), ws_max_size=MIB) as port,
        open_socket(port, "/ws") as client,
    ):
        await client.send("é" * 5)
        assert await client.recv() == "é" * 5
        await client.send("é" * 5 + "x")
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(client.recv(), WAIT_S)
        assert (client.close_code, client.close_reason) == (1009, "message too big")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(frame(2, b"x" * 100_001), id="message"),
        pytest.param(frame(2, b"x" * 20_001), id="frame"),
        pytest.param(frame(2, b"x" * 20_000, fin=False) + frame(0, b"x" * 20_000, fin=False) * 5, id="fragments"),
        pytest.param(frame(2, b"x", fin=False) + frame(0, b"x" * 100, fin=False) * 1_000, id="small fragments"),
    ],
)
async def test_case_6_15_a_worker_s_message_over_the_cap_ends_both_legs(data: bytes) -> None:
    got = bytearray()

    async def too_much(visit: Visitor) -> None:
        await visit.accept()
        await visit.send(data)
        while more := await visit.reader.read(1000):
            got.extend(more)

    settings = RelaySettings(max_message_bytes=100_000, max_fragment_bytes=20_000, close_s=0.5)
    async with scripted_worker(too_much) as worker, gateway([worker.url], settings=settings) as front:
        async with open_socket(front.port, "/ws") as client:
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(client.recv(), WAIT_S)
            assert client.close_code == 1014
        await front.is_idle()
        assert _unmasked_close(bytes(got)) == 1009


@pytest.mark.parametrize("leg", MESSAGE_LEGS[:1])
async def test_a_message_in_many_empty_fragments_is_one_message(leg: str) -> None:
    async def pieces(visit: Visitor) -> None:
        await visit.accept()
        await visit.send(frame(1, b"a", fin=False) + frame(0, b"", fin=False) * 50_000 + frame(0, b"b"))
        await visit.reader.read()

    async with (
        scripted_worker(pieces) as worker,
        gateway([worker.url], leg=leg, settings=RelaySettings(close_s=0.5)) as front,
        open_socket(front.port, "/ws") as client,
    ):
        assert await asyncio.wait_for(client.recv(), WAIT_S) == "ab"


@pytest.mark.parametrize("leg", MESSAGE_LEGS[:1])
async def test_a_worker_that_pings_and_does_not_read_gets_no_pile_of_pongs(leg: str) -> None:
    async def pinging(visit: Visitor) -> None:
        await visit.accept()
        visit.writer.transport.pause_reading()  # type: ignore[attr-defined]
        for _ in range(150):
            await visit.send(frame(9, b"x" * 100) * 1000)
        await visit.send(frame(1, b"done"))
        await asyncio.sleep(WAIT_S)

    settings = RelaySettings(close_s=0.3)
    async with (
        scripted_worker(pinging) as worker,
        gateway([worker.url], leg=leg, settings=settings) as front,
        open_socket(front.port, "/ws") as client,
    ):
        assert await asyncio.wait_for(client.recv(), WAIT_S) == "done"
        (dialled,) = (thing for thing in gc.get_objects() if type(thing) is WorkerLeg)
        assert dialled._transport is not None
        assert dialled._transport.get_write_buffer_size() < 300_000


@pytest.mark.parametrize("leg", CLIENT_LEGS)
async def test_a_client_that_breaks_a_cap_while_its_worker_talks_is_nobody_s_error(leg: str) -> None:
    settings = RelaySettings(max_message_bytes=100_000, close_s=0.3)
    async with scripted_worker(Fountain()) as worker, gateway([worker.url], leg=leg, settings=settings) as front:
        for _ in range(20):
            async with open_socket(front.port, "/ws") as client:
                for _ in range(5):
                    await client.recv()
                await client.send(b"x" * 100_001)
                with suppress(ConnectionClosed):
                    while await asyncio.wait_for(client.recv(), WAIT_S):
                        pass
        await front.is_idle()
