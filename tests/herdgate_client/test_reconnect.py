"""One socket after the other: tickets, backoff, and nothing left open."""

import asyncio
import gc
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from herdgate_client import ConfigurationError, connect
from tests.herdgate_client.scripted import (
    CUT,
    OPEN,
    SILENCE,
    Enough,
    Retries,
    Time,
    closing,
    giving,
    refusal,
    sockets_of,
)
from tests.herdgate_gateway.gateways import closed_port, until

TOLD = '{"retry_ms":7340,"ticket":"1.abc"}'
DENIAL = refusal(429, "Retry-After: 8", "Herdgate-Retry-Ms: 7340", "Herdgate-Ticket: 1.abc")


async def test_denial_is_obeyed_to_the_millisecond_and_its_ticket_shown() -> None:
    retries, time = Retries(), Time()
    async with giving(DENIAL, OPEN) as server:
        await sockets_of(server.url, retries, time=time)
        assert [visit.header("herdgate-ticket") for visit in server.visits] == [[], ["1.abc"]]
    assert retries.delays == [7.34]
    assert 1_007.34 <= time.now < 1_007.36


@pytest.mark.parametrize("code", [1012, 1013])
async def test_close_is_obeyed_to_the_millisecond_and_its_ticket_shown(code: int) -> None:
    retries, time = Retries(), Time()
    async with giving(closing(code, TOLD), OPEN) as server:
        await sockets_of(server.url, retries, 2, time=time)
        assert [visit.header("herdgate-ticket") for visit in server.visits] == [[], ["1.abc"]]
    assert (retries.delays, retries.whys) == ([7.34], [f"closed with {code}"])
    assert time.now >= 1_007.34


async def test_retry_after_is_a_floor_with_jitter_on_top() -> None:
    retries = Retries()
    date = ("Retry-After: Mon, 30 Nov 2026 14:00:08 GMT", "Date: Mon, 30 Nov 2026 14:00:00 GMT")
    async with giving(refusal(503, "Retry-After: 8"), refusal(503, *date), OPEN) as server:
        await sockets_of(server.url, retries)
    assert 8.1 <= retries.delays[0] <= 9
    assert 8.1 <= retries.delays[1] <= 10


async def test_ticket_is_kept_until_it_brings_us_in() -> None:
    async with giving(DENIAL, CUT, refusal(503), closing(1001), OPEN) as server:
        await sockets_of(server.url, Retries(), 2)
        assert [visit.header("herdgate-ticket") for visit in server.visits] == [[], *[["1.abc"]] * 3, []]


async def test_newer_ticket_replaces_the_older_one_and_the_users_own() -> None:
    newer = refusal(429, "Herdgate-Retry-Ms: 1", "Herdgate-Ticket: 1.xyz")
    async with giving(DENIAL, newer, OPEN) as server:
        headers = {"Herdgate-Ticket": "1.own", "X-User": "me"}
        await sockets_of(server.url, Retries(), additional_headers=headers)
        assert [visit.header("herdgate-ticket") for visit in server.visits] == [["1.own"], ["1.abc"], ["1.xyz"]]
        assert [visit.header("x-user") for visit in server.visits] == [["me"]] * 3


async def test_session_token_is_shown_ever_after() -> None:
    async with giving(closing(1001), OPEN, headers=("Herdgate-Session: s.abc",)) as server:
        await sockets_of(server.url, Retries(), 2)
        assert [visit.header("herdgate-session") for visit in server.visits] == [[], ["s.abc"]]


async def test_redirect_is_followed_anew_each_time() -> None:
    async with giving(OPEN) as target, giving(refusal(307, f"Location: {target.url}/there")) as server:
        for _ in range(2):
            await sockets_of(server.url, Retries())
        assert (len(server.visits), len(target.visits)) == (2, 2)


async def test_case_1_15_flapping_server_is_left_alone_more_and_more() -> None:
    retries = Retries(most=40)
    async with giving(closing(1011)) as server:
        with pytest.raises(Enough):
            await sockets_of(server.url, retries, 1_000, lasting_s=29.9)
    assert [delay for failures, delay in enumerate(retries.delays) if not 0.1 <= delay <= min(30, 2**failures)] == []
    assert sum(retries.delays[10:]) / 30 > 10


async def test_stable_session_ends_the_backoff() -> None:
    retries = Retries(most=40)
    async with giving(closing(1011)) as server:
        with pytest.raises(Enough):
            await sockets_of(server.url, retries, 1_000, lasting_s=31)
    assert all(0.1 <= delay <= 1 for delay in retries.delays)


async def test_attempts_count_handshakes_since_the_last_stable_session() -> None:
    time, counts = Time(), []
    async with giving(refusal(503), CUT, closing(1001), OPEN, CUT, OPEN) as server:
        client = connect(server.url, clock=time, sleep=time.sleep, proxy=None)
        async with client as sockets:
            async for ws in sockets:
                counts.append(client.attempts)
                if len(counts) == 3:
                    break
                if len(counts) == 1:
                    await ws.wait_closed()
                time.now += 10 if len(counts) == 1 else 31
    assert counts == [3, 4, 2]


async def test_body_that_ends_closes_its_socket_and_gets_another() -> None:
    retries, time, seen = Retries(), Time(), list[ClientConnection]()
    async with giving(OPEN) as server:
        client = connect(server.url, on_retry=retries, clock=time, sleep=time.sleep, proxy=None)
        async with client as sockets:
            async for ws in sockets:
                assert [old.close_code for old in seen] == [1000] * len(seen)
                seen.append(ws)
                if len(seen) == 3:
                    break
        assert len(server.visits) == 3
    assert all(delay >= 0.1 for delay in retries.delays)


async def test_body_sees_why_its_socket_was_lost() -> None:
    async with giving(closing(4001, "done")) as server:
        async with connect(server.url, proxy=None) as sockets:
            async for ws in sockets:
                with pytest.raises(ConnectionClosed, match="4001"):
                    await ws.recv()
                break
        assert len(server.visits) == 1


async def first(client: connect) -> ClientConnection:
    async for ws in client:
        return ws
    raise AssertionError("the loop has ended")


async def test_one_dial_at_a_time_however_many_loops_there_are() -> None:
    async with giving(SILENCE) as server:
        client = connect(server.url, proxy=None, open_timeout=0.5, on_retry=Retries(most=1))
        loops = [asyncio.create_task(first(client)) for _ in range(3)]
        with pytest.raises(Enough):
            await loops[0]
        assert len(server.visits) == client.attempts == 1
        for loop in loops:
            loop.cancel()
        await asyncio.wait(loops)


@pytest.mark.parametrize("answer", [SILENCE, OPEN])
async def test_cancelled_loop_leaves_nothing_open(answer: bytes) -> None:
    async def run(url: str) -> None:
        async for ws in connect(url, proxy=None):
            await ws.recv()

    async with giving(answer) as server:
        task = asyncio.create_task(run(server.url))
        await until(lambda: len(server.visits) == 1 and bool(server.visits[0].head), "a dial")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gc.collect()
        await until(server.visits[0].writer.is_closing, "the socket is closed")
        await until(lambda: len(asyncio.all_tasks()) == 1, "no task is left", within_s=10)


async def test_cancelled_wait_ends_at_once() -> None:
    waiting = asyncio.Event()
    client = connect(closed_port(), proxy=None, base_s=3600, cap_s=3600, on_retry=lambda *_: waiting.set())
    task = asyncio.create_task(first(client))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert client.attempts == 1


async def test_block_that_is_left_by_an_error_has_closed_its_socket() -> None:
    seen: list[ClientConnection] = []

    async def run(url: str) -> None:
        async with connect(url, proxy=None) as sockets:
            async for ws in sockets:
                seen.append(ws)
                raise ZeroDivisionError

    async with giving(OPEN) as server:
        with pytest.raises(ZeroDivisionError):
            await run(server.url)
        assert [ws.close_code for ws in seen] == [1000]


async def test_second_loop_keeps_to_the_backoff_of_the_first() -> None:
    retries, time = Retries(), Time()
    async with giving(OPEN) as server:
        client = connect(server.url, on_retry=retries, clock=time, sleep=time.sleep, proxy=None)
        for _ in range(3):
            async with client as sockets:
                await anext(sockets)
    assert len(retries.delays) == 2
    assert all(delay >= 0.1 for delay in retries.delays)


@pytest.mark.parametrize(
    ("url", "arguments", "field"),
    [
        ("http://chat.example/ws", {}, "url"),
        ("chat.example", {}, "url"),
        ("ws://", {}, "url"),
        ("ws://chat.example:99999/", {}, "url"),
        ("", {}, "url"),
        (5, {}, "url"),
        ("ws://chat.example/a b", {}, "url"),
        ("ws://chat.example/\r\nX: y", {}, "url"),
        ("ws://chat.example:0/", {}, "url"),
        ("ws://chat.example", {"on_retry": 5}, "on_retry"),
        ("ws://chat.example", {"on_retry": asyncio.sleep}, "on_retry"),
        ("ws://chat.example", {"stable_s": 0}, "stable_s"),
        ("ws://chat.example", {"reconnect_delays": iter}, "reconnect_delays"),
        ("ws://chat.example", {"process_exception": None}, "process_exception"),
        ("ws://chat.example", {"sock": None}, "sock"),
        ("ws://chat.example", {"nonsense": 1}, "nonsense"),
        ("ws://chat.example", {"stable": 60}, "stable"),
        ("ws://chat.example", {"proxy_nonsense": 1}, "proxy_nonsense"),
        ("ws://chat.example", {"kwargs": {}}, "kwargs"),
    ],
)
def test_mistake_is_said_before_anything_is_dialled(url: Any, arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigurationError) as wrong:
        connect(url, **arguments)
    assert wrong.value.field == field


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://me:secret@chat.example/ws?token=secret", "'http://***@chat.example/ws?***'"),
        ("ws://me:se@cret#secret@chat.example/ws", "'ws://***@chat.example/ws'"),
        ("ws://me:sec/ret?secret@chat.example:70000/", "'ws://***@chat.example:70000/'"),
        ("ws://chat.example:0/?token=secret\nsecret", "'ws://chat.example:0/?***'"),
        ("me:secret@chat.example", "'***@chat.example'"),
        (b"ws://me:secret@chat.example", "<class 'bytes'>"),
    ],
)
def test_wrong_url_is_shown_without_its_secrets(url: Any, shown: str) -> None:
    with pytest.raises(ConfigurationError) as wrong:
        connect(url)
    assert str(wrong.value) == f"url: got {shown}; write a WebSocket URL, as in wss://chat.example/ws"
    assert wrong.value.__suppress_context__, "the cause would show all of it"


def test_arguments_of_websockets_and_of_what_it_calls_are_taken() -> None:
    connect("ws://chat.example", max_size=1, host="127.0.0.1", local_addr=("127.0.0.1", 0), proxy_ssl=None)
    connect("ws://localhost/", unix=True, path="/run/chat.sock")


def test_arguments_of_websockets_are_checked_by_websockets() -> None:
    with pytest.raises(ValueError, match="unsupported compression"):
        connect("ws://chat.example", compression="zip")
