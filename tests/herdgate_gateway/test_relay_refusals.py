"""A worker that does not take a handshake: what the client is told, what the pool learns, what is logged."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial

import pytest

from herdgate import Limits
from herdgate_gateway.breaker import BreakerSettings
from herdgate_gateway.relay import RelaySettings
from herdgate_gateway.workers import SILENCE_S
from tests.herdgate_gateway.gateways import (
    CLIENT_LEGS,
    ScriptedWorker,
    Visitor,
    closed_port,
    echo_worker,
    frame,
    gateway,
    open_files,
    scripted_worker,
    serve,
    until,
)
from tests.wire import WAIT_S, Answer, eventually, handshake, knock, open_socket, raw, read_close

pytestmark = pytest.mark.usefixtures("both_relays")

Script = Callable[[Visitor], Awaitable[None]]
QUICK = RelaySettings(setup_s=0.3, close_s=0.5)
OPEN_END = BreakerSettings(failures=1_000_000)


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


async def accepts_wrongly(visit: Visitor) -> None:
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


async def never_ends_its_head(visit: Visitor) -> None:
    await visit.read_head()
    await visit.send(b"HTTP/1.1 101 Switching Protocols\r\n")
    while True:
        await visit.send(b"X-More: x\r\n")
        await asyncio.sleep(0.05)


async def sends_too_much_head(visit: Visitor) -> None:
    await visit.read_head()
    await visit.send(b"HTTP/1.1 101 Switching Protocols\r\n" + b"X: y\r\n" * 1_000_000)


@pytest.mark.parametrize("leg", CLIENT_LEGS)
@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("302 Found\r\nLocation: /elsewhere", 302),
        ("401 Unauthorized\r\nWWW-Authenticate: Basic", 401),
        ("403 Forbidden", 403),
        ("426 Upgrade Required\r\nSec-WebSocket-Version: 13", 426),
        ("429 Too Many Requests\r\nRetry-After: 7", 429),
        ("503 Service Unavailable\r\nRetry-After: 7", 503),
        ("599 Whatever", 599),
    ],
)
async def test_case_6_13_the_worker_s_refusal_reaches_the_client_whole(leg: str, line: str, status: int) -> None:
    body = b'{"error": "because"}'
    head = f"HTTP/1.1 {line}\r\nContent-Type: application/json\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1"
    async with scripted_worker(answering(head, body)) as worker, gateway([worker.url], leg=leg) as front:
        async with raw(front.port, handshake("/ws")) as client:
            answer = await client.answer()
        await front.is_idle()

        assert (answer.status, answer.body) == (status, body)
        assert answer.headers["content-type"] == "application/json"
        assert "x-hop" not in answer.headers
        assert "herdgate-retry-ms" not in answer.headers, "not to be taken for one of ours"
        for header in line.split("\r\n")[1:]:
            name, _, value = header.partition(": ")
            assert answer.headers[name.lower()] == value
        assert front.pool.snapshot()[0].failures == (status >= 500)
        assert len(worker.visits) == 1


@pytest.mark.parametrize("leg", CLIENT_LEGS)
async def test_a_refusal_without_a_length_or_in_chunks_is_passed_on_with_one(leg: str) -> None:
    chunked = answering(
        "HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked", b"3\r\nno,\r\n4\r\n no.\r\n0\r\n\r\n", length=False
    )
    for script in (answering("HTTP/1.1 403 Forbidden", b"no, no.", length=False), chunked):
        async with scripted_worker(script) as worker, gateway([worker.url], leg=leg) as front:
            answer = await knock(front.port, "/ws")

        assert (answer.status, answer.body) == (403, b"no, no.")
        assert answer.headers["content-length"] == "7"


async def test_a_real_worker_s_refusals_are_passed_on() -> None:
    async def refusing(scope: object, receive: object, send: Callable[..., Awaitable[None]]) -> None:
        await send({"type": "websocket.http.response.start", "status": 429, "headers": [(b"retry-after", b"7")]})
        await send({"type": "websocket.http.response.body", "body": b"later"})

    for ws in ("websockets-sansio", "wsproto"):
        async with serve(refusing, ws=ws) as port, gateway([f"ws://127.0.0.1:{port}"]) as front:
            answer = await knock(front.port, "/ws")

        assert (answer.status, answer.headers["retry-after"], answer.body) == (429, "7", b"later")


@pytest.mark.parametrize("leg", CLIENT_LEGS)
@pytest.mark.parametrize(
    ("script", "status"),
    [
        (answering("HTTP/1.1 200 OK", b"hello"), 502),
        (answering("HTTP/1.1 204 No Content"), 502),
        (answering("HTTP/1.1 103 Early Hints", length=False), 502),
        (accepts_wrongly, 502),
        (accepts_an_extension, 502),
        (accepts_a_subprotocol, 502),
        (answering("HTTP/1.1 403 Forbidden", b"x" * (2 << 20)), 502),
        (answering("HTTP/1.1 403 Forbidden\r\nContent-Length: 10", b"short"), 502),
        (hangs_up, 502),
        (resets, 502),
        (speaks_garbage, 502),
        (sends_too_much_head, 502),
        (says_nothing, 504),
        (never_ends_its_head, 504),
    ],
)
async def test_a_worker_that_makes_no_sense_is_a_bad_gateway(leg: str, script: Script, status: int) -> None:
    async with (
        scripted_worker(script) as worker,
        gateway([worker.url], leg=leg, settings=QUICK, breaker=OPEN_END) as front,
    ):
        answer = await knock(front.port, "/ws")
        await front.is_idle()

        assert answer.status == status
        assert answer.json()["reason"] == "upstream"
        assert int(answer.headers["herdgate-retry-ms"]) >= 1
        assert front.pool.snapshot()[0].failures == 1
        assert front.gate.snapshot().denied == {"upstream": 1}


async def test_a_worker_that_is_not_there_is_a_bad_gateway() -> None:
    async with gateway([closed_port()]) as front:
        assert (await knock(front.port, "/ws")).status == 502
        assert front.pool.snapshot()[0].failures == 1


async def test_no_worker_at_all_is_a_bad_gateway() -> None:
    async with gateway([]) as front:
        assert (await knock(front.port, "/ws")).status == 502


async def test_a_page_is_told_by_a_close_when_to_come_back() -> None:
    async with gateway([closed_port()], limits=Limits(rate=10)) as front:
        closed = await read_close(front.port, "/ws", headers=[("Origin", f"http://127.0.0.1:{front.port}")])

    assert closed.code == 1013
    assert closed.json()["retry_ms"] >= 1


async def test_case_7_14_a_failing_worker_is_dialled_once_for_each_client_at_most() -> None:
    async with scripted_worker(hangs_up) as worker, gateway([worker.url], breaker=OPEN_END) as front:
        answers = await asyncio.gather(*(knock(front.port, "/ws") for _ in range(50)))

        assert {answer.status for answer in answers} == {502}
        assert len(worker.visits) == 50


async def test_a_broken_worker_is_left_alone_and_comes_back() -> None:
    fine = asyncio.Event()

    async def moody(visit: Visitor) -> None:
        if fine.is_set():
            await visit.accept()
            await visit.reader.read()

    breaker = BreakerSettings(failures=3, open_s=0.4, ramp_s=0)
    async with scripted_worker(moody) as worker, gateway([worker.url], settings=QUICK, breaker=breaker) as front:
        for _ in range(10):
            assert (await knock(front.port, "/ws")).status == 502
        assert len(worker.visits) == 3
        assert front.pool.snapshot()[0].state == "broken"
        fine.set()

        async def works() -> bool:
            return (await knock(front.port, "/ws")).status == 101

        await eventually(works, "the worker is back")
        assert len(worker.visits) == 4, "one probe"
        await front.is_idle()


async def test_a_crowd_that_hits_a_hanging_worker_does_not_break_it_twice() -> None:
    breaker = BreakerSettings(failures=3, open_s=0.2, ramp_s=0)
    async with scripted_worker(says_nothing) as worker, gateway([worker.url], settings=QUICK, breaker=breaker) as front:
        answers = await asyncio.gather(*(knock(front.port, "/ws") for _ in range(30)))
        dials = len(worker.visits)
        await asyncio.gather(*(knock(front.port, "/ws") for _ in range(30)))

    assert {answer.status for answer in answers} == {504}
    assert dials == 30
    assert len(worker.visits) <= 31


async def _crowd_before(bad: Script, clients: int = 20) -> tuple[list[int], int]:
    """A worker like that beside a good one: what clients that stay are answered, and how many the bad one saw."""
    async with scripted_worker(bad) as worker, echo_worker() as good, AsyncExitStack() as stack:
        breaker = BreakerSettings(failures=3, open_s=60)
        front = await stack.enter_async_context(gateway([worker.url, good.url], settings=QUICK, breaker=breaker))
        answers = []
        for _ in range(clients):
            client = await stack.enter_async_context(raw(front.port, handshake("/ws")))
            answers.append((await client.head())[0])
        return answers, len(worker.visits)


@pytest.mark.parametrize(
    ("script", "status"),
    [
        (answering("HTTP/1.1 200 OK", b"hello"), 502),
        (accepts_wrongly, 502),
        (accepts_an_extension, 502),
        (accepts_a_subprotocol, 502),
        (answering("HTTP/1.1 500 Oops"), 500),
        (answering("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7"), 503),
    ],
)
async def test_a_worker_that_takes_nobody_is_left_alone(script: Script, status: int) -> None:
    answers, visits = await _crowd_before(script)

    assert visits == 3
    assert sorted(answers) == [101] * 17 + [status] * 3


@pytest.mark.parametrize("line", ["302 Found", "401 No", "403 No", "404 Not here", "429 Later\r\nRetry-After: 7"])
async def test_a_worker_that_refuses_a_client_is_well(line: str) -> None:
    _, visits = await _crowd_before(answering(f"HTTP/1.1 {line}"))

    assert visits > 10, "it goes on getting its share"


async def test_a_client_that_leaves_a_silent_worker_after_a_second_is_its_failure() -> None:
    breaker = BreakerSettings(failures=3, open_s=60)
    async with scripted_worker(says_nothing) as worker, gateway([worker.url], breaker=breaker) as front:
        async with AsyncExitStack() as stack:
            for _ in range(3):
                await stack.enter_async_context(raw(front.port, handshake("/ws")))
            await until(partial(_dialled, worker, 3), "dialled")
            await asyncio.sleep(SILENCE_S + 0.1)  # the time that counts
        await front.is_idle()

        assert front.pool.snapshot()[0].failures == 3
        assert (await knock(front.port, "/ws")).status == 502
        assert len(worker.visits) == 3


def _dialled(worker: ScriptedWorker, times: int) -> bool:
    return len(worker.visits) >= times


@pytest.mark.parametrize("leg", CLIENT_LEGS)
@pytest.mark.parametrize("how", ["reset", "hang up"])
async def test_case_5_2_a_client_that_leaves_while_its_worker_is_dialled_frees_the_only_place(
    leg: str, how: str
) -> None:
    settings = RelaySettings(setup_s=30)
    async with (
        scripted_worker(says_nothing) as worker,
        gateway([worker.url], leg=leg, settings=settings, limits=Limits(rate=None, max_open=1)) as front,
    ):
        for number in range(50):
            async with raw(front.port, handshake("/ws")) as client:
                await until(partial(_dialled, worker, number + 1), "dialled")
                if how == "reset":
                    client.reset()
            await front.is_idle()
        assert front.pool.snapshot()[0].failures == 0, "nobody's fault"
        assert len(worker.visits) == 50


async def test_cancelled_and_failed_dials_leave_no_file_and_no_task() -> None:
    async with scripted_worker(says_nothing) as mute, scripted_worker(resets) as rude, echo_worker() as good:
        settings = RelaySettings(setup_s=0.05)
        urls = [mute.url, rude.url, closed_port(), good.url]
        async with gateway(urls, settings=settings, breaker=OPEN_END) as front:
            await knock(front.port, "/ws")

            async def visit(number: int) -> None:
                if number % 3:
                    await knock(front.port, "/ws")
                    return
                async with raw(front.port, handshake("/ws")):
                    await asyncio.sleep(0.001 * (number % 20))

            await front.is_idle()
            before, tasks = open_files(), len(asyncio.all_tasks())
            for batch in range(30):
                await asyncio.gather(*(visit(10 * batch + number) for number in range(10)))
            await front.is_idle()
            await until(lambda: open_files() <= before + 2, f"files: {before}, then {open_files()}")
            await until(lambda: len(asyncio.all_tasks()) <= tasks + 2, "tasks")


async def test_a_refusal_that_outlasts_its_client_is_no_error() -> None:
    async def slowly(visit: Visitor) -> None:
        await visit.read_head()
        await asyncio.sleep(0.05)
        await visit.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")

    async with scripted_worker(slowly) as worker, gateway([worker.url]) as front:
        for wait_s in (0.0, 0.04, 0.05, 0.051, 0.06):
            async with raw(front.port, handshake("/ws")):
                await asyncio.sleep(wait_s)
        await front.is_idle()


async def test_101_and_dead_is_a_close_and_no_failure_of_the_handshake() -> None:
    async def dies(visit: Visitor) -> None:
        await visit.accept()
        visit.reset()

    async with scripted_worker(dies) as worker, gateway([worker.url]) as front:
        async with open_socket(front.port, "/ws") as client:
            await asyncio.wait_for(client.wait_closed(), WAIT_S)
        assert client.close_code == 1012
        await front.is_idle()
        assert front.pool.snapshot()[0].failures == 0


async def test_a_refused_page_gets_the_worker_s_own_answer() -> None:
    async with scripted_worker(answering("HTTP/1.1 401 Unauthorized", b"no")) as worker, gateway([worker.url]) as front:
        answer: Answer = await knock(front.port, "/ws", headers=[("Origin", "http://x.example")])

    assert (answer.status, answer.body) == (401, b"no")


async def test_a_worker_s_frame_in_front_of_its_answer_is_garbage() -> None:
    async def backwards(visit: Visitor) -> None:
        await visit.read_head()
        await visit.send(frame(1, b"hello"))
        await visit.reader.read()

    async with scripted_worker(backwards) as worker, gateway([worker.url], settings=QUICK) as front:
        assert (await knock(front.port, "/ws")).status in (502, 504)
