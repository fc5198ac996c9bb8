"""A worker that does not take a handshake: what the client is told, what the pool learns, what is left behind."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack

import pytest

from herdgate import Limits
from herdgate.core.clients import LOCAL
from herdgate.core.permits import Permits
from herdgate_gateway.headers import Forwarding
from herdgate_gateway.relay import RelaySettings
from herdgate_gateway.splice import SpliceRelay
from herdgate_gateway.workers import WorkerPool
from tests.herdgate_gateway.gateways import (
    Visitor,
    echo_worker,
    frame,
    open_files,
    scripted_worker,
    until,
)
from tests.herdgate_gateway.splice.fronts import scope_of, splice
from tests.wire import handshake, knock, raw

PAIRS = 50

Script = Callable[[Visitor], Awaitable[None]]
QUICK = RelaySettings(setup_s=0.3, close_s=0.5)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing at ERROR, whatever a client or a worker does."""
    yield
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def answering(head: str, body: bytes = b"", *, length: bool = True) -> Script:
    async def script(visit: Visitor) -> None:
        await visit.read_head()
        lines = [head, *([f"Content-Length: {len(body)}"] if length else [])]
        await visit.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    return script


async def accepts_another_key(visit: Visitor) -> None:
    await visit.read_head()
    await visit.send(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n"
    )
    await visit.reader.read()


async def accepts_an_extension(visit: Visitor) -> None:
    await visit.accept("Sec-WebSocket-Extensions: permessage-deflate")
    await visit.reader.read()


async def accepts_a_subprotocol(visit: Visitor) -> None:
    await visit.accept("Sec-WebSocket-Protocol: never-offered")
    await visit.reader.read()


async def says_nothing(visit: Visitor) -> None:
    await visit.reader.read()


async def hangs_up(visit: Visitor) -> None:
    await visit.read_head()


async def resets(visit: Visitor) -> None:
    await visit.read_head()
    visit.reset()


async def speaks_garbage(visit: Visitor) -> None:
    await visit.send(b"SSH-2.0-OpenSSH_9.2\r\n")
    await visit.reader.read()


async def speaks_frames(visit: Visitor) -> None:
    await visit.read_head()
    await visit.send(frame(1, b"hello\r\n"))
    await visit.reader.read()


async def never_ends_its_head(visit: Visitor) -> None:
    await visit.read_head()
    await visit.send(b"HTTP/1.1 101 Switching Protocols\r\n")
    while True:
        await visit.send(b"X-More: x\r\n")
        await asyncio.sleep(0.05)


async def sends_too_many_headers(visit: Visitor) -> None:
    await visit.read_head()
    await visit.send(b"HTTP/1.1 101 Switching Protocols\r\n" + b"X: y\r\n" * 1_000_000)


async def sends_too_long_a_head(visit: Visitor) -> None:
    await visit.read_head()
    await visit.send(b"HTTP/1.1 403 Forbidden\r\n" + (b"X: " + b"y" * 8_000 + b"\r\n") * 9)
    await visit.send(b"Content-Length: 0\r\n\r\n")
    await visit.reader.read()


@pytest.mark.parametrize(
    ("script", "status"),
    [
        (answering("HTTP/1.1 200 OK", b"hello"), 502),
        (answering("HTTP/1.1 204 No Content"), 502),
        (answering("HTTP/1.1 103 Early Hints", length=False), 502),
        (accepts_another_key, 502),
        (accepts_an_extension, 502),
        (accepts_a_subprotocol, 502),
        (answering("HTTP/1.1 403 Forbidden", b"x" * (2 << 20)), 502),
        (answering("HTTP/1.1 403 Forbidden\r\nContent-Length: 10", b"short"), 502),
        (hangs_up, 502),
        (resets, 502),
        (speaks_garbage, 502),
        (speaks_frames, 502),
        (sends_too_many_headers, 502),
        (sends_too_long_a_head, 502),
        (says_nothing, 504),
        (never_ends_its_head, 504),
    ],
)
async def test_a_worker_that_makes_no_sense_is_a_bad_gateway(script: Script, status: int) -> None:
    async with scripted_worker(script) as worker, splice([worker.url], settings=QUICK) as front:
        answer = await knock(front.port, "/ws")
        await front.is_idle()

        assert (answer.status, answer.headers["x-from"]) == (status, "upstream")
        assert front.pool.snapshot()[0].failures == 1


async def test_a_refusal_just_below_its_limits_is_passed_on() -> None:
    headers = ("X: " + "y" * 8_000 + "\r\n") * 7
    script = answering(f"HTTP/1.1 403 Forbidden\r\n{headers}X-Last: 1", b"z" * (1 << 20))
    async with (
        scripted_worker(script) as worker,
        splice([worker.url]) as front,
        raw(front.port, handshake("/")) as client,
    ):
        answer = await client.answer()
    assert (answer.status, len(answer.body), answer.headers["x-last"]) == (403, 1 << 20, "1")


async def test_the_worker_that_was_granted_gets_the_client() -> None:
    async with echo_worker() as one, echo_worker() as two:
        relay = SpliceRelay(WorkerPool([one.url, two.url]), QUICK, Forwarding())
        for worker in (two, one, two):
            permit = Permits(Limits(rate=None)).take(LOCAL, worker.url)
            (await relay.dial(scope_of(handshake("/ws")), permit)).discard()
        assert (len(one.seen), len(two.seen)) == (1, 2)


@pytest.mark.parametrize("how", ["reset", "hang up"])
async def test_a_client_that_leaves_while_its_worker_is_dialled_leaves_nothing(how: str) -> None:
    settings = RelaySettings(setup_s=30)
    async with scripted_worker(says_nothing) as worker, splice([worker.url], settings=settings) as front:
        before = open_files()
        for number in range(1, 21):
            async with raw(front.port, handshake("/ws")) as client:
                await until(lambda number=number: len(worker.visits) == number, "dialled")  # type: ignore[misc]
                if how == "reset":
                    client.reset()
            await front.is_idle()
        await until(lambda: open_files() <= before, "files")
        assert front.pool.snapshot()[0].failures == 0, "nobody's fault"


@pytest.mark.parametrize("when_s", [0.0, 0.001, 0.01, 0.05])
async def test_a_dial_that_is_cancelled_leaves_neither_socket_nor_assignment(when_s: float) -> None:
    async with scripted_worker(says_nothing) as worker:
        pool = WorkerPool([worker.url])
        before = open_files()
        dialling = asyncio.ensure_future(SpliceRelay(pool, QUICK, Forwarding()).dial(scope_of(handshake("/ws")), None))
        await asyncio.sleep(when_s)
        dialling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dialling
        assert pool.snapshot()[0].pending == 0
        await until(lambda: open_files() <= before, "no file is left")


async def test_a_worker_that_took_the_handshake_of_a_client_that_has_left_is_told() -> None:
    async with echo_worker() as worker:
        pool = WorkerPool([worker.url])
        upstream = await SpliceRelay(pool, QUICK, Forwarding()).dial(scope_of(handshake("/ws")), None)
        assert pool.snapshot()[0].open == 1
        upstream.discard()
        assert pool.snapshot()[0].open == 0
        await until(lambda: worker.ended == [(1001, "")], f"{worker.ended}")


async def test_what_a_client_said_to_a_worker_that_is_lost_goes_to_nobody_who_has_its_descriptor_now() -> None:
    near, far = socket.socketpair()
    client, _ = await asyncio.get_running_loop().create_unix_connection(asyncio.Protocol, sock=near)
    async with echo_worker() as worker:
        relay, ended = SpliceRelay(WorkerPool([worker.url]), QUICK, Forwarding()), asyncio.Event()
        upstream = await relay.dial(scope_of(handshake("/ws")), None)
        descriptor = upstream.transport.get_extra_info("socket").fileno()
        upstream.transport.abort()
        await until(lambda: upstream.is_lost, "the worker is lost")
        with ExitStack() as stack:
            pairs = [socket.socketpair() for _ in range(PAIRS)]
            for one in (far, *(one for pair in pairs for one in pair)):
                stack.enter_context(one)
            (stranger,) = [
                b if a.fileno() == descriptor else a for a, b in pairs if descriptor in (a.fileno(), b.fileno())
            ]
            stranger.setblocking(False)
            relay.join(upstream, client, ended.set, frame(1, b"x", mask=True) * 2)
            with pytest.raises(BlockingIOError):
                stranger.recv(1)
            far.close()
            await asyncio.wait_for(ended.wait(), 5)
