"""A worker that does not take a handshake: what the client is told, what the pool learns, what is left behind."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator

import pytest

from herdgate import Refused
from herdgate_gateway.breaker import BreakerSettings
from herdgate_gateway.headers import Forwarding
from herdgate_gateway.relay import RelaySettings
from herdgate_gateway.splice import SpliceRelay
from herdgate_gateway.workers import WorkerPool
from tests.herdgate_gateway.gateways import (
    Visitor,
    closed_port,
    echo_worker,
    frame,
    open_files,
    scripted_worker,
    serve,
    until,
)
from tests.herdgate_gateway.splice.fronts import scope_of, splice
from tests.wire import WAIT_S, handshake, knock, open_socket, raw

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


@pytest.mark.parametrize("line", ["302 Found\r\nLocation: /x", "401 No", "429 Later\r\nRetry-After: 7", "599 What"])
async def test_the_worker_s_refusal_reaches_the_client_whole(line: str) -> None:
    async with scripted_worker(answering(f"HTTP/1.1 {line}", b'{"no": 1}')) as worker, splice([worker.url]) as front:
        async with raw(front.port, handshake("/ws")) as client:
            answer = await client.answer()
        await front.is_idle()

    assert (answer.status, answer.body) == (int(line[:3]), b'{"no": 1}')
    for header in line.split("\r\n")[1:]:
        name, _, value = header.partition(": ")
        assert answer.headers[name.lower()] == value
    assert front.pool.snapshot()[0].failures == (answer.status >= 500)


async def test_a_refusal_without_a_length_or_in_chunks_is_read_to_its_end() -> None:
    chunked = answering(
        "HTTP/1.1 403 x\r\nTransfer-Encoding: chunked", b"3\r\nno,\r\n4\r\n no.\r\n0\r\n\r\n", length=False
    )
    for script in (answering("HTTP/1.1 403 x", b"no, no.", length=False), chunked):
        async with scripted_worker(script) as worker, splice([worker.url]) as front:
            assert (await knock(front.port, "/ws")).body == b"no, no."


async def test_a_real_worker_s_refusals_are_passed_on() -> None:
    async def refusing(scope: object, receive: object, send: Callable[..., Awaitable[None]]) -> None:
        await send({"type": "websocket.http.response.start", "status": 429, "headers": [(b"retry-after", b"7")]})
        await send({"type": "websocket.http.response.body", "body": b"later"})

    for ws in ("websockets-sansio", "wsproto"):
        async with serve(refusing, ws=ws) as port, splice([f"ws://127.0.0.1:{port}"]) as front:
            answer = await knock(front.port, "/ws")

        assert (answer.status, answer.headers["retry-after"], answer.body) == (429, "7", b"later")


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


async def test_a_worker_that_is_not_there_is_a_bad_gateway() -> None:
    async with splice([closed_port()]) as front:
        assert (await knock(front.port, "/ws")).status == 502
        assert front.pool.snapshot()[0].failures == 1


async def test_no_worker_at_all_is_a_bad_gateway() -> None:
    with pytest.raises(Refused) as refused:
        await SpliceRelay(WorkerPool([]), QUICK, Forwarding()).dial(scope_of(handshake("/ws")), None)
    assert (refused.value.reason, refused.value.status) == ("upstream", None)


async def test_the_worker_that_was_granted_gets_the_client() -> None:
    async with echo_worker() as one, echo_worker() as two:
        relay = SpliceRelay(WorkerPool([one.url, two.url]), QUICK, Forwarding())
        for worker in (two, one, two):
            (await relay.dial(scope_of(handshake("/ws")), worker.url)).discard()
        assert (len(one.seen), len(two.seen)) == (1, 2)


async def test_a_broken_worker_is_left_alone_and_comes_back() -> None:
    fine = asyncio.Event()

    async def moody(visit: Visitor) -> None:
        if fine.is_set():
            await visit.accept()
            await visit.reader.read()

    breaker = BreakerSettings(failures=3, open_s=0.4, ramp_s=0)
    async with scripted_worker(moody) as worker, splice([worker.url], settings=QUICK, breaker=breaker) as front:
        for _ in range(10):
            assert (await knock(front.port, "/ws")).status == 502
        assert len(worker.visits) == 3
        fine.set()
        statuses: set[int] = set()

        async def probe() -> None:
            while 101 not in statuses:
                statuses.add((await knock(front.port, "/ws")).status)

        await asyncio.wait_for(probe(), WAIT_S)
        assert len(worker.visits) == 4, "one probe"
        await front.is_idle()


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
            await front.is_idle(within_s=1.0)
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


async def test_101_and_dead_is_a_close_and_no_failure_of_the_handshake() -> None:
    async def dies(visit: Visitor) -> None:
        await visit.accept()
        visit.reset()

    async with scripted_worker(dies) as worker, splice([worker.url]) as front:
        async with open_socket(front.port, "/ws") as client:
            await asyncio.wait_for(client.wait_closed(), WAIT_S)
        assert client.close_code == 1014
        await front.is_idle()
        assert front.pool.snapshot()[0].failures == 0
