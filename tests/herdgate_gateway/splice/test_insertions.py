"""What the gateway says itself, between the frames of others."""

import asyncio
import logging
import random
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed

from herdgate_gateway.relay import RelaySettings
from tests.herdgate_gateway.gateways import Visitor, echo_worker, frame, open_files, scripted_worker, until
from tests.herdgate_gateway.splice.fronts import splice
from tests.herdgate_gateway.splice.scripts import Listener, close_payload, frames_of, read_frames
from tests.wire import WAIT_S, Raw, handshake, open_socket, raw

QUICK = RelaySettings(close_s=0.4)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing above INFO."""
    yield
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


class Told:
    """A worker that sends what it is told to, and keeps what it gets."""

    def __init__(self) -> None:
        self.listener = Listener()
        self.visit: Visitor | None = None

    async def __call__(self, visit: Visitor) -> None:
        self.visit = visit
        await self.listener(visit)

    async def send(self, data: bytes) -> None:
        """Write it."""
        await asyncio.wait_for(self.listener.is_open.wait(), WAIT_S)
        assert self.visit is not None
        await self.visit.send(data)


async def read_exactly(client: Raw, size: int) -> bytes:
    got = b""
    while len(got) < size:
        got += await client.read(size - len(got))
    return got


async def test_a_quiet_socket_is_told_at_once() -> None:
    async with echo_worker() as worker, splice([worker.url]) as front:
        async with open_socket(front.port, "/ws") as client:
            joint = await front.has_joined()
            joint.say("we restart")
            joint.close(1012, '{"retry_ms":5}')
            joint.close(4000, "never said")
            assert await asyncio.wait_for(client.recv(), WAIT_S) == "we restart"
            with pytest.raises(ConnectionClosed):
                await client.recv()
            assert (client.close_code, client.close_reason) == (1012, '{"retry_ms":5}')
        await until(lambda: worker.ended == [(1001, "")], f"{worker.ended}")
        await front.is_idle()
        joint.close(1012, "over")
        joint.say("over")
        joint.abort()


async def test_a_code_that_may_not_be_sent_is_not() -> None:
    async with echo_worker() as worker, splice([worker.url]) as front, open_socket(front.port, "/ws") as client:
        (await front.has_joined()).close(1006, "é" * 100)
        with pytest.raises(ConnectionClosed):
            await client.recv()
        assert (client.close_code, client.close_reason) == (1014, "é" * 61)


async def test_a_close_waits_for_the_end_of_the_frame_and_nothing_follows_it() -> None:
    worker, message = Told(), frame(2, b"x" * 1000)
    async with scripted_worker(worker) as listening, splice([listening.url]) as front:
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            await worker.send(message[:500])
            got = await read_exactly(client, 500)
            front.joint.close(1012, "")
            front.joint.say("too late")
            await worker.send(message[500:] + frame(1, b"dropped") + frame(8, close_payload(4000)))
            got += await read_exactly(client, 504 + 4)
            await client.send(frame(8, close_payload(1012), mask=True))
            assert await client.read() == b""
        await front.is_idle()
    opcodes = [opcode for opcode, _ in frames_of(got, masked=False)]
    assert opcodes == [2, 8]


async def test_a_message_waits_for_the_end_of_the_message_and_pings_do_not_count() -> None:
    worker = Told()
    async with (
        scripted_worker(worker) as listening,
        splice([listening.url]) as front,
        raw(front.port, handshake("/ws")) as client,
    ):
        await client.head()
        await worker.send(frame(1, b"a", fin=False))
        await read_exactly(client, 3)
        front.joint.say("ours")
        front.joint.say("and more")
        await worker.send(frame(9, b"p") + frame(0, b"b", fin=False) + frame(0, b"c") + frame(2, b"d"))
        found = [await client.frame() for _ in range(6)]
        assert found == [(9, b"p"), (0, b"b"), (0, b"c"), (1, b"ours"), (1, b"and more"), (2, b"d")]
        front.joint.say("and again")
        assert await client.frame() == (1, b"and again")


async def test_a_close_does_not_wait_for_the_end_of_a_message() -> None:
    worker = Told()
    async with (
        scripted_worker(worker) as listening,
        splice([listening.url]) as front,
        raw(front.port, handshake("/ws")) as client,
    ):
        await client.head()
        await worker.send(frame(1, b"a", fin=False))
        await read_exactly(client, 3)
        front.joint.say("never fits")
        front.joint.close(1012, "")
        assert await client.frame() == (8, close_payload(1012))


async def test_the_worker_is_told_behind_the_client_s_frame() -> None:
    worker, message = Told(), frame(2, b"x" * 1000, mask=True)
    async with (
        scripted_worker(worker) as listening,
        splice([listening.url]) as front,
        raw(front.port, handshake("/ws")) as client,
    ):
        await client.head()
        await client.send(message[:500])
        await until(lambda: len(worker.listener.got) == 500, "half of it is there")
        front.joint.close(1012, "")
        assert await client.frame() == (8, close_payload(1012))
        await client.send(message[500:] + frame(1, b"dropped", mask=True))
        await until(lambda: len(worker.listener.got) > len(message), "the worker is told")
        await client.send(frame(8, close_payload(1012), mask=True))
        assert await client.read() == b"", "the client is done"
    assert [opcode for opcode, _ in worker.listener.frames()] == [2, 8]
    assert worker.listener.frames()[1] == (8, close_payload(1001))


async def test_a_client_that_is_closed_may_go_on_for_close_s_and_no_longer() -> None:
    async with echo_worker() as worker, splice([worker.url], settings=QUICK) as front:
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            front.joint.close(1012, "")
            start = time.monotonic()
            with suppress(ConnectionError):
                while front.relay.joints:
                    await client.send(frame(2, b"x" * 1000, mask=True))
                    await asyncio.sleep(0.001)
            assert QUICK.close_s <= time.monotonic() - start < QUICK.close_s + 5
        await front.is_idle()
        assert worker.ended == [(1001, "")]


async def test_a_worker_that_stays_within_a_frame_keeps_its_client_for_close_s_only() -> None:
    worker = Told()
    async with scripted_worker(worker) as listening, splice([listening.url], settings=QUICK) as front:
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            await worker.send(frame(2, b"x" * 1000)[:500])
            await read_exactly(client, 500)
            front.joint.close(1012, "")
            start = time.monotonic()
            assert await client.read() == b""
            assert time.monotonic() - start < QUICK.close_s + 5
        await front.is_idle()


async def test_an_aborted_joint_is_gone_at_once() -> None:
    async with echo_worker() as worker, splice([worker.url]) as front:
        before = open_files()
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            joint = await front.has_joined()
            assert 0 <= joint.age_s < WAIT_S
            joint.abort()
            await front.is_idle()
            joint.look_around(0.0)  # the sweeper's round may have begun before
            with suppress(ConnectionError):
                assert await client.read() == b""
        await until(lambda: open_files() <= before, "files")
        await until(lambda: len(worker.ended) == 1, "the worker sees it")


async def test_whatever_is_said_in_whatever_moment_both_ends_see_whole_frames() -> None:
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)

    async def chatter(visit: Visitor) -> None:
        await visit.accept()
        reading = asyncio.ensure_future(visit.reader.read())
        for number in range(200):
            pieces = [b"x" * rng.choice([0, 5, 300, 3000]) for _ in range(rng.choice([1, 1, 3]))]
            data = b"".join(
                frame(2 if place == 0 else 0, piece, fin=place == len(pieces) - 1) for place, piece in enumerate(pieces)
            )
            while data:
                size = rng.choice([1, 7, 500, 5000])
                await visit.send(data[:size])
                data = data[size:]
                await asyncio.sleep(0)
            assert number < 200
        await visit.send(frame(8, close_payload(1000)))
        await reading

    async with scripted_worker(chatter) as worker, splice([worker.url]) as front:
        async with open_socket(front.port, "/ws") as client:
            joint = await front.has_joined()
            ours = theirs = said = 0
            with suppress(ConnectionClosed):
                while True:
                    if said < 50:
                        joint.say(f"{said}")
                        said += 1
                    message = await asyncio.wait_for(client.recv(), WAIT_S)
                    if isinstance(message, str):
                        assert message == f"{ours}", f"seed {seed}"
                        ours += 1
                    else:
                        theirs += 1
        assert (client.close_code, theirs, ours) == (1000, 200, said), f"seed {seed}"
        await front.is_idle()


async def test_closing_the_relay_tells_everyone_and_cuts_who_stays() -> None:
    settings = RelaySettings(close_s=30)
    async with echo_worker() as worker, splice([worker.url], settings=settings) as front:
        async with (
            open_socket(front.port, "/ws") as polite,
            raw(front.port, handshake("/ws")) as silent,
        ):
            await silent.head()
            await until(lambda: len(front.relay.joints) == 2, "both are in")
            start = time.monotonic()
            await front.relay.aclose(1012, "drained", within_s=0.5)
            assert 0.45 <= time.monotonic() - start < 8
            assert len(front.relay.joints) == front.taken == 0
            with pytest.raises(ConnectionClosed):
                await polite.recv()
            assert (polite.close_code, polite.close_reason) == (1012, "drained")
            assert await read_frames(silent) == [(8, close_payload(1012, "drained"))]
        assert worker.ended == [(1001, "")] * 2
        await front.relay.aclose(1012, "again", within_s=0.5)
