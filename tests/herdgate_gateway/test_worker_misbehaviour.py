"""Workers that misbehave before 200 clients, on `herdgate serve`: a defined answer, the permit back, a quiet log."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from tests.herdgate_gateway.gateways import Visitor, closed_port, frame, scripted_worker
from tests.herdgate_gateway.outside import beside, is_idle
from tests.herdgate_gateway.serving import Serving
from tests.wire import WAIT_S, handshake, open_socket, raw

Script = Callable[[Visitor], Awaitable[None]]
CLIENTS, AT_ONCE = 200, 50


def settings(*, setup_s: float = 10, failures: int = 1_000_000, mode: str = "splice") -> str:
    """Settings of a gateway; unless told otherwise, each client's handshake reaches the worker."""
    relay = f'[relay]\nmode = "{mode}"\n'
    relay += f"setup_s = {setup_s}\nclose_s = 0.5\nstall_s = 1\n"
    return f"rate = 100000\n{relay}[breaker]\nfailures = {failures}\nopen_s = 60\n"


def answering(*lines: str, body: bytes = b"") -> Script:
    async def script(visit: Visitor) -> None:
        await visit.read_head()
        head = [*lines, f"Content-Length: {len(body)}"]
        await visit.send("\r\n".join(head).encode() + b"\r\n\r\n" + body)

    return script


async def never_answers(visit: Visitor) -> None:
    await visit.reader.read()


async def stalls_in_its_head(visit: Visitor) -> None:
    await visit.read_head()
    await visit.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: web")
    await visit.reader.read()


async def resets(visit: Visitor) -> None:
    await visit.read_head()
    visit.reset()


async def speaks_garbage(visit: Visitor) -> None:
    await visit.read_head()
    await visit.send(b"\x16\x03\x01 what a TLS server might say\r\n\r\n" * 100)
    await visit.reader.read()


def complaints(front: Serving) -> list[str]:
    """What it has logged but for INFO, and the sums of denials that it tells now and then."""
    lines = [line for line in front.log().splitlines() if not line.startswith("INFO:")]
    sums = [line for line in lines if "denied arrivals: " in line]
    assert len(sums) < 5
    return [line for line in lines if line not in sums]


async def crowd(front: Serving, visit: Callable[[Serving], Awaitable[Any]], clients: int = CLIENTS) -> Counter[Any]:
    """What became of so many clients, some at a time."""
    outcomes: Counter[Any] = Counter()
    for _ in range(clients // AT_ONCE):
        outcomes.update(await asyncio.gather(*(visit(front) for _ in range(AT_ONCE))))
    return outcomes


async def answer_of(front: Serving) -> tuple[int, str]:
    """Status, and whose refusal it is."""
    async with raw(front.port, handshake("/ws")) as client:
        answer = await client.answer()
    ours = "herdgate-retry-ms" in answer.headers
    assert not ours or (answer.json()["reason"], answer.json()["retry_ms"] >= 1) == ("upstream", True)
    return answer.status, "ours" if ours else "the worker's"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param(resets, (502, "ours"), id="resets"),
        pytest.param(speaks_garbage, (502, "ours"), id="garbage"),
        pytest.param(answering("HTTP/1.1 200 OK", body=b"hello"), (502, "ours"), id="200"),
        pytest.param(answering("HTTP/1.1 401 Unauthorized"), (401, "the worker's"), id="401"),
        pytest.param(answering("HTTP/1.1 403 Forbidden", body=b"no"), (403, "the worker's"), id="403"),
        pytest.param(answering("HTTP/1.1 426 Upgrade Required"), (426, "the worker's"), id="426"),
        pytest.param(answering("HTTP/1.1 503 x"), (503, "the worker's"), id="503"),
    ],
)
async def test_case_6_13_a_worker_that_takes_no_handshake(script: Script, expected: tuple[int, str]) -> None:
    async with scripted_worker(script) as worker, beside(settings(), worker.url) as front:
        assert await crowd(front, answer_of) == {expected: CLIENTS}
        assert len(worker.visits) == CLIENTS
        await is_idle(front)
        assert [worker.url in line for line in complaints(front)] == [True] * (expected[0] >= 500), "once for all"


@pytest.mark.parametrize("script", [never_answers, stalls_in_its_head])
async def test_case_6_13_a_worker_that_hangs_is_a_504_at_the_deadline(script: Script) -> None:
    async with scripted_worker(script) as worker, beside(settings(setup_s=0.7), worker.url) as front:
        began = time.monotonic()
        assert await crowd(front, answer_of) == {(504, "ours"): CLIENTS}
        assert time.monotonic() - began >= 0.7 * CLIENTS / AT_ONCE
        await is_idle(front)
        (line,) = complaints(front)
        assert f"worker fails: {worker.url} (no answer within 0.7 s)" in line


async def test_case_6_13_a_refusal_keeps_its_retry_time_and_body() -> None:
    script = answering("HTTP/1.1 429 Too Many Requests", "Retry-After: 7", body=b"later")
    async with (
        scripted_worker(script) as worker,
        beside(settings(), worker.url) as front,
        raw(front.port, handshake("/ws")) as client,
    ):
        answer = await client.answer()
    assert (answer.status, answer.headers["retry-after"], answer.body) == (429, "7", b"later")


@pytest.mark.parametrize("script", [never_answers, resets, speaks_garbage])
async def test_a_worker_that_breaks_is_left_alone_and_said_so_once(script: Script) -> None:
    async with scripted_worker(script) as worker, beside(settings(setup_s=0.7, failures=20), worker.url) as front:
        first = await crowd(front, answer_of, AT_ONCE)
        assert {whose for _, whose in first} == {"ours"}
        assert await crowd(front, answer_of) == {(502, "ours"): CLIENTS}
        assert 20 <= len(worker.visits) <= AT_ONCE, "none of the others is sent there"
        await is_idle(front)
        begun, broken = complaints(front)
        assert f"worker fails: {worker.url}" in begun
        assert f"worker fails, leaving it alone: {worker.url}" in broken


async def test_a_worker_that_is_not_there_is_said_so_once() -> None:
    url = closed_port()
    async with beside(settings(failures=20), url) as front:
        assert await crowd(front, answer_of) == {(502, "ours"): CLIENTS}
        await is_idle(front)
        begun, broken = complaints(front)
        assert f"worker fails: {url} (cannot connect: " in begun
        assert f"worker fails, leaving it alone: {url}" in broken


async def dies_by_a_reset(visit: Visitor) -> None:
    await visit.accept()
    visit.reset()


async def dies_quietly(visit: Visitor) -> None:
    await visit.accept()


async def dies_within_a_frame(visit: Visitor) -> None:
    await visit.accept(then=frame(2, b"x" * 1_000)[:500])


async def breaks_the_protocol(visit: Visitor) -> None:
    await visit.accept(then=b"\xff" * 1_000)
    await visit.reader.read()


async def says_goodbye_and_stays(visit: Visitor) -> None:
    await visit.accept(then=frame(8, b"\x0f\xa0bye"))
    await asyncio.sleep(WAIT_S)


@pytest.mark.parametrize(
    ("mode", "script", "code"),
    [
        ("splice", dies_by_a_reset, 1012),
        ("splice", dies_quietly, 1012),
        ("splice", dies_within_a_frame, 1006),  # there is no place for a close frame
        ("splice", says_goodbye_and_stays, 4000),
        ("messages", dies_quietly, 1012),
        ("messages", dies_within_a_frame, 1012),
        ("messages", breaks_the_protocol, 1014),
        ("messages", says_goodbye_and_stays, 4000),
    ],
)
async def test_a_worker_that_answers_101_and_dies_closes_its_clients_with_a_code(
    mode: str, script: Script, code: int
) -> None:
    async def client(front: Serving) -> int | None:
        async with open_socket(front.port, "/ws") as opened:
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(opened.recv(), WAIT_S)
        return opened.close_code

    async with scripted_worker(script) as worker, beside(settings(mode=mode), worker.url) as front:
        assert await crowd(front, client) == {code: CLIENTS}
        await is_idle(front)
        assert complaints(front) == []


async def test_a_worker_that_stops_reading_is_given_up_in_time() -> None:
    async def deaf(visit: Visitor) -> None:
        await visit.accept()
        visit.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(3 * WAIT_S)

    async def client(front: Serving) -> int | None:
        async with open_socket(front.port, "/ws") as pouring, asyncio.timeout(WAIT_S):
            with suppress(ConnectionClosed):
                while True:
                    await pouring.send(b"x" * 65_536)
        return pouring.close_code

    async with scripted_worker(deaf) as worker, beside(settings(), worker.url) as front:
        assert await asyncio.gather(*(client(front) for _ in range(5))) == [1014] * 5
        await is_idle(front)
        assert complaints(front) == []
