"""How one leg's end becomes the other's: codes, deadlines, and nothing left behind."""

import asyncio
import gc
import json
import logging
import time
from collections.abc import Iterator

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from herdgate_gateway.relay import RelaySettings
from herdgate_gateway.splice.halves import Half
from herdgate_gateway.splice.joint import Joint
from tests.herdgate_gateway.gateways import CALLED_BACK, Visitor, echo_worker, frame, open_files, scripted_worker, until
from tests.herdgate_gateway.splice.fronts import Front, splice
from tests.herdgate_gateway.splice.scripts import Listener, Script, close_payload, closing, frames_of, read_frames
from tests.wire import WAIT_S, handshake, open_socket, raw

QUICK = RelaySettings(close_s=0.3)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing above INFO, whatever a client or a worker does."""
    yield
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


async def vanish(visit: Visitor) -> None:
    await visit.accept()


async def reset(visit: Visitor) -> None:
    await visit.accept()
    visit.reset()


async def break_the_rules(visit: Visitor) -> None:
    await visit.accept(then=b"\xff\xff\xff\xff")
    await visit.reader.read()


async def mask_a_frame(visit: Visitor) -> None:
    await visit.accept(then=frame(1, b"x", mask=True))
    await visit.reader.read()


async def vanish_within_a_header(visit: Visitor) -> None:
    await visit.accept(then=frame(1, b"x" * 300)[:3])


async def vanish_within_a_close(visit: Visitor) -> None:
    await visit.accept(then=frame(8, close_payload(1000, "bye"))[:4])


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (closing(b""), (1005, "")),
        (closing(close_payload(1000, "bye")), (1000, "bye")),
        (closing(close_payload(1001)), (1001, "")),
        (closing(close_payload(1012, "restart")), (1012, "restart")),
        (closing(close_payload(1012, '{"retry_ms":5}')), (1012, '{"retry_ms":5}')),
        (closing(close_payload(1012)), (1012, CALLED_BACK)),
        (closing(close_payload(1012, "shard moved")), (1012, CALLED_BACK)),
        (closing(close_payload(1013, '{"retry_ms":5}')), (1013, '{"retry_ms":5}')),
        (closing(close_payload(3000, "ours")), (3000, "ours")),
        (closing(close_payload(4999, "é" * 61)), (4999, "é" * 61)),
        (closing(close_payload(1005)), (1014, "")),
        (closing(close_payload(1006)), (1014, "")),
        (closing(close_payload(1015)), (1014, "")),
        (closing(close_payload(1004)), (1014, "")),
        (closing(close_payload(999)), (1014, "")),
        (closing(close_payload(2999)), (1014, "")),
        (closing(close_payload(5000)), (1014, "")),
        (closing(b"\x03"), (1014, "")),
        (closing(close_payload(1000) + b"\xff"), (1014, "")),
        (vanish, (1012, CALLED_BACK)),
        (reset, (1012, CALLED_BACK)),
        (break_the_rules, (1014, "")),
        (mask_a_frame, (1014, "")),
        (vanish_within_a_header, (1012, CALLED_BACK)),
        (vanish_within_a_close, (1012, CALLED_BACK)),
    ],
)
async def test_the_worker_s_end_is_told_to_the_client_in_codes_that_may_be_sent(
    script: Script, expected: tuple[int, str]
) -> None:
    async with scripted_worker(script) as worker, splice([worker.url], settings=QUICK) as front:
        async with open_socket(front.port, "/ws") as client:
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(client.recv(), WAIT_S)
        assert closed.value.rcvd is not None, "no close frame"
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == expected
        await front.is_idle()


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"", (1005, "")),
        (close_payload(1000, "bye"), (1000, "bye")),
        (close_payload(3000, "ours"), (3000, "ours")),
        (close_payload(4999, "x" * 123), (4999, "x" * 123)),
    ],
)
async def test_the_client_s_end_is_told_to_the_worker(sent: bytes, expected: tuple[int, str]) -> None:
    async with echo_worker() as worker, splice([worker.url]) as front:
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            await client.send(frame(8, sent, mask=True))
            assert await read_frames(client) == [(8, sent)]
        await until(lambda: worker.ended == [expected], f"{expected}, not {worker.ended}")
        await front.is_idle()


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame(8, close_payload(1005), mask=True), id="a code that may not be sent"),
        pytest.param(frame(1, b"x"), id="not masked"),
        pytest.param(frame(0, b"x", mask=True), id="a continuation of nothing"),
        pytest.param(frame(9, b"x", fin=False, mask=True), id="half a ping"),
        pytest.param(frame(9, b"x" * 126, mask=True), id="a long ping"),
        pytest.param(b"\xff\xff\xff\xff" * 1000, id="garbage"),
    ],
)
async def test_a_client_that_breaks_the_protocol_is_told_and_nothing_of_it_reaches_the_worker(sent: bytes) -> None:
    listener = Listener()
    async with scripted_worker(listener) as worker, splice([worker.url], settings=QUICK) as front:
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            await client.send(frame(1, b"fine", mask=True) + sent)
            assert await read_frames(client) == [(8, close_payload(1002, "protocol error"))]
        await front.is_idle()
        await asyncio.wait_for(listener.ended.wait(), WAIT_S)
    assert listener.frames() == [(1, b"fine"), (8, close_payload(1001, "the client broke the protocol"))]


async def test_a_worker_that_breaks_the_protocol_is_told() -> None:
    listener = Listener(first=frame(2, b"fine") + b"\x83\0")
    async with scripted_worker(listener) as worker, splice([worker.url], settings=QUICK) as front:
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            assert await client.frame() == (2, b"fine")
            assert await client.frame() == (8, close_payload(1014))
            await client.send(frame(8, close_payload(1014), mask=True))
        await front.is_idle()
        await asyncio.wait_for(listener.ended.wait(), WAIT_S)
    assert listener.frames() == [(8, close_payload(1002, "protocol error"))]


@pytest.mark.parametrize("how", ["reset", "hang up"])
async def test_a_client_that_is_gone_is_told_to_the_worker_at_once(how: str) -> None:
    async with echo_worker() as worker, splice([worker.url]) as front:
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            if how == "reset":
                client.reset()
        await until(lambda: worker.ended == [(1001, "")], f"{worker.ended}")
        await front.is_idle()


async def test_a_client_that_is_gone_within_a_frame_leaves_the_worker_with_a_connection_that_ends() -> None:
    listener = Listener()
    sent = frame(2, b"x" * 1000, mask=True)[:500]
    async with scripted_worker(listener) as worker, splice([worker.url], settings=QUICK) as front:
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            await client.send(sent)
            await until(lambda: bytes(listener.got) == sent, "half a frame is there")
        await asyncio.wait_for(listener.ended.wait(), WAIT_S)
        await front.is_idle()
    assert listener.got == sent


async def test_a_worker_that_is_gone_within_a_frame_leaves_the_client_with_a_connection_that_ends() -> None:
    sent = frame(2, b"x" * 1000)[:500]

    async def dies(visit: Visitor) -> None:
        await visit.accept(then=sent)

    async with scripted_worker(dies) as worker, splice([worker.url], settings=QUICK) as front:
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            got = b""
            while data := await client.read():
                got += data
            assert got == sent
        await front.is_idle()


async def test_messages_before_the_end_are_all_delivered() -> None:
    async def talks_and_leaves(visit: Visitor) -> None:
        await visit.accept()
        await visit.send(b"".join(frame(2, b"%04d" % number) for number in range(1000)))
        await visit.send(frame(8, close_payload(4000)) + frame(1, b"after the end"))

    async with scripted_worker(talks_and_leaves) as worker, splice([worker.url]) as front:
        async with open_socket(front.port, "/ws") as client:
            received = [await client.recv() for _ in range(1000)]
            with pytest.raises(ConnectionClosed):
                await client.recv()
        assert received == [b"%04d" % number for number in range(1000)]
        assert client.close_code == 4000
        await front.is_idle()


async def test_a_client_that_never_answers_a_close_is_gone_after_close_s() -> None:
    async with scripted_worker(closing(close_payload(1000))) as worker, splice([worker.url], settings=QUICK) as front:
        before = open_files()
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            start = time.monotonic()
            assert await read_frames(client) == [(8, close_payload(1000))]
            assert QUICK.close_s <= time.monotonic() - start < QUICK.close_s + 5
            await front.is_idle()
        await until(lambda: open_files() <= before, "files")


async def test_a_worker_that_never_answers_a_close_is_gone_after_close_s_and_the_client_is_answered() -> None:
    ended = asyncio.Event()

    async def silent(visit: Visitor) -> None:
        await visit.accept()
        await visit.reader.read()
        ended.set()
        await asyncio.sleep(WAIT_S)

    async with scripted_worker(silent) as worker, splice([worker.url], settings=QUICK) as front:
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            start = time.monotonic()
            await client.send(frame(8, close_payload(1000), mask=True))
            assert await read_frames(client) == [(8, b"")]
            assert QUICK.close_s <= time.monotonic() - start < QUICK.close_s + 5
        await asyncio.wait_for(ended.wait(), WAIT_S)
        await front.is_idle()


async def test_a_worker_that_ends_its_side_gets_the_client_s_answer() -> None:
    listener = Listener()

    async def half(visit: Visitor) -> None:
        listener.first = frame(8, close_payload(4001))
        await visit.accept(then=listener.first)
        visit.writer.write_eof()
        listener.got += await visit.reader.read()
        listener.ended.set()

    async with scripted_worker(half) as worker, splice([worker.url]) as front:
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            assert await read_frames(client) == [(8, close_payload(4001))], "and the end of the stream behind it"
            await client.send(frame(8, close_payload(4001), mask=True))
            await asyncio.wait_for(listener.ended.wait(), WAIT_S)
        await front.is_idle()
    assert listener.frames() == [(8, close_payload(4001))]


async def test_a_client_that_ends_its_side_gets_what_the_worker_still_sends() -> None:
    async def last_words(visit: Visitor) -> None:
        await visit.accept()
        await visit.reader.readexactly(6 + 2)
        await visit.send(frame(1, b"last words") + frame(8, close_payload(1000)))
        await visit.reader.read()

    async with scripted_worker(last_words) as worker, splice([worker.url]) as front:
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            client._writer.write_eof()
            assert await read_frames(client) == [(1, b"last words"), (8, close_payload(1000))]
        await front.is_idle()


async def test_both_ends_at_once_are_one_end() -> None:
    async with echo_worker() as worker, splice([worker.url]) as front:
        for _ in range(30):
            async with raw(front.port, handshake("/ws")) as client:
                await client.head()
                await client.send(frame(1, b"close 4001 now", mask=True) + frame(8, close_payload(4002), mask=True))
                assert [opcode for opcode, _ in await read_frames(client)] == [8]
        await front.is_idle()


async def test_a_socket_without_a_byte_is_closed_after_idle_s() -> None:
    settings = RelaySettings(idle_s=0.3, close_s=0.3)
    async with echo_worker() as worker, splice([worker.url], settings=settings) as front:
        async with open_socket(front.port, "/ws") as client:
            start = time.monotonic()
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(client.recv(), WAIT_S)
            assert (client.close_code, client.close_reason) == (1001, "idle")
            assert 0.25 <= time.monotonic() - start < 8
        await until(lambda: worker.ended == [(1001, "idle")], "the worker is told too")
        await front.is_idle()


async def test_a_socket_with_messages_either_way_is_not_idle() -> None:
    async def talks(visit: Visitor) -> None:
        await visit.accept()
        for _ in range(8):
            await asyncio.sleep(0.1)
            await visit.send(frame(1, b"tick"))
        await visit.send(frame(8, close_payload(4000)))
        await visit.reader.read()

    settings = RelaySettings(idle_s=0.4, close_s=0.3)
    async with (
        scripted_worker(talks) as worker,
        splice([worker.url], settings=settings) as front,
        open_socket(front.port, "/ws") as client,
    ):
        for _ in range(8):
            assert await client.recv() == "tick"
        await asyncio.wait_for(client.wait_closed(), WAIT_S)
        assert client.close_code == 4000


class Answering:
    """A worker that answers every message of one byte, and keeps what each client sent."""

    def __init__(self) -> None:
        self.got: list[bytearray] = []

    async def __call__(self, visit: Visitor) -> None:
        await visit.accept()
        got = bytearray()
        self.got.append(got)
        while data := await visit.reader.read(100):
            got += data
            if data[0] & 0x0F == 1:
                await visit.send(frame(1, b"x"))


async def test_a_socket_that_is_old_enough_is_sent_away_with_a_time_to_come_back() -> None:
    settings = RelaySettings(max_age_s=0.5, close_s=0.3)
    answering, reasons = Answering(), set[str]()

    async def talk(client: ClientConnection) -> None:
        while True:
            await client.send("x")
            await asyncio.wait_for(client.recv(), WAIT_S)

    async def stay(port: int) -> float:
        async with open_socket(port, "/ws") as client:
            start = time.monotonic()
            with pytest.raises(ConnectionClosed):
                await talk(client)
            assert client.close_code == 1012
            reasons.add(client.close_reason or "")
            return time.monotonic() - start

    async with scripted_worker(answering) as worker, splice([worker.url], settings=settings) as front:
        lives = await asyncio.gather(*(stay(front.port) for _ in range(20)))
        assert all(0.4 <= life < 2.0 for life in lives)
        waits = [json.loads(reason)["retry_ms"] for reason in reasons]
        assert all(100 <= wait <= 1000 for wait in waits)
        assert len(waits) > 1
        await front.is_idle()
    assert len(answering.got) == 20
    for got in answering.got:
        assert frames_of(bytes(got), masked=True)[-1] == (8, close_payload(1001)), "the worker is told that it goes"


async def come_and_go(front: Front, number: int) -> None:
    async with raw(front.port, handshake("/ws")) as client:
        if number % 4:
            await client.head()
        if number % 4 == 1:
            await client.send(frame(8, close_payload(1000), mask=True))
        elif number % 4 == 2:
            client.reset()
        elif number % 4 == 3:
            await client.read()


async def test_hundreds_of_ends_of_every_kind_leave_no_file_no_task_and_no_object() -> None:
    ends = [closing(close_payload(1000)), vanish, reset, break_the_rules, closing(b"")]
    turn = iter(range(1_000_000))

    async def any_way(visit: Visitor) -> None:
        await ends[next(turn) % len(ends)](visit)

    async with scripted_worker(any_way) as worker, splice([worker.url], settings=QUICK) as front:
        await come_and_go(front, 1)
        await front.is_idle()
        before, tasks = open_files(), len(asyncio.all_tasks())
        gc.collect()
        gc.disable()
        try:
            for batch in range(30):
                await asyncio.gather(*(come_and_go(front, 10 * batch + number) for number in range(10)))
            await front.is_idle()
            await until(lambda: open_files() <= before, f"{before} files")
            await until(lambda: len(asyncio.all_tasks()) <= tasks, f"{tasks} tasks")
            left = [thing for thing in gc.get_objects() if type(thing) in (Half, Joint)]
            assert left == [], "without a collection"
        finally:
            gc.enable()
