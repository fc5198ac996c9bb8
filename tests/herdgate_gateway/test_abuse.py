"""Peers that mean harm, at the real process: what they get, what it costs the others, what is logged."""

import asyncio
import contextlib
import time

import pytest

from tests.herdgate_gateway.gateways import Visitor, echo_worker, scripted_worker, until
from tests.herdgate_gateway.serving import Serving, serving
from tests.wire import WAIT_S, Raw, ask, knock, open_socket, raw

AREAS = """
rate = 1000
[[routes]]
name = "public"
paths = ["/public/*"]
[[routes]]
name = "admin"
paths = ["/admin/*"]
auth = { url = "http://127.0.0.1:1/" }
"""

OTHERWISE = [
    "/public/../admin/x",
    "/public/%2e%2e/admin/x",
    "/public/%2E./admin/x",
    "/public/..\\admin/x",
    "/public/..%5cadmin/x",
    "/public/..%2fadmin/x",
    "/public/..;/admin/x",
    "/public/%252e%252e/admin/x",
    "/public/./x",
    "/public/a/..",
]


HANDSHAKE = (
    "Host: a",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
)


def handshake(path: str, *lines: str, version: str = "1.1") -> bytes:
    """One by hand: clients' libraries tidy it up."""
    more = lines or ("Connection: Upgrade",)
    return "\r\n".join((f"GET {path} HTTP/{version}", *HANDSHAKE, *more)).encode() + b"\r\n\r\n"


async def status_of(gateway: Serving, request: bytes) -> int:
    async with raw(gateway.port, request) as client:
        return (await client.head())[0]


@pytest.mark.parametrize("path", OTHERWISE)
async def test_path_that_a_worker_may_take_for_another_one_gets_past_no_route(path: str) -> None:
    async with echo_worker() as worker:
        with serving(AREAS, worker.url) as gateway:
            assert await status_of(gateway, handshake(path)) == 400
    assert worker.seen == []


async def test_paths_with_dots_that_are_no_segments_of_dots_pass() -> None:
    async with echo_worker() as worker:
        with serving(AREAS, worker.url) as gateway:
            for path in ("/public/v1.2/...", "/public/a..b", "/public/%41", "/public/.well-known"):
                assert await status_of(gateway, handshake(path)) == 101, path


@pytest.mark.parametrize("named", ["Upgrade, X-User", "Upgrade, Host", "x-user,upgrade", "Upgrade, Origin"])
async def test_header_cannot_be_dropped_behind_the_check_by_naming_it_in_connection(named: str) -> None:
    async with echo_worker() as worker:
        with serving("rate = 1000", worker.url) as gateway:
            lines = (f"Connection: {named}", "X-User: alice", "Origin: http://a")
            assert await status_of(gateway, handshake("/ws", *lines)) == 400
            allowed = handshake("/ws", "Connection: keep-alive, Upgrade", "X-User: alice")
            assert await status_of(gateway, allowed) == 101
    assert len(worker.seen) == 1


async def test_handshake_of_an_older_http_is_refused() -> None:
    async with echo_worker() as worker:
        with serving("rate = 1000", worker.url) as gateway:
            assert await status_of(gateway, handshake("/ws", version="1.0")) == 400
    assert worker.seen == []


@pytest.mark.parametrize("begin", [b"GET / HTTP/1.1\r\nHost: a\r\nX: ", b"GET /"])
async def test_head_without_end_is_cut_off_and_keeps_nobody_waiting(begin: bytes) -> None:
    async with echo_worker() as worker:
        with serving("rate = 1000", worker.url) as gateway:
            async with raw(gateway.port, begin) as client:
                flooding = asyncio.ensure_future(send_all(client))
                began = time.monotonic()
                assert (await knock(gateway.port, "/ws")).status == 101
                assert time.monotonic() - began < 4
                assert await flooding < 64 << 20


async def send_all(client: Raw) -> int:
    """Bytes that could be sent before the connection was cut, of 64 MiB."""
    sent = 0
    with contextlib.suppress(OSError):
        for _ in range(1_024):
            await client.send(b"a" * 65_536)
            sent += 65_536
    return sent


async def test_half_a_head_is_dropped_at_its_deadline() -> None:
    async with echo_worker() as worker:
        with serving("rate = 1000", worker.url) as gateway:
            async with raw(gateway.port, b"GET / HTTP/1.1\r\nHo") as client:
                began = time.monotonic()
                assert await read_to_end(client) == b""
                assert 4 < time.monotonic() - began < 9


async def read_to_end(client: Raw) -> bytes:
    with contextlib.suppress(OSError):
        return await client.read()
    return b""


async def test_frames_that_break_the_protocol_before_the_101_cost_a_connection_and_no_traceback() -> None:
    async def hang(visitor: Visitor) -> None:
        await asyncio.sleep(WAIT_S)

    async with scripted_worker(hang) as worker:
        with serving('rate = 1000\n[relay]\nmode = "messages"', worker.url) as gateway:
            for frame in (b"\x81\x02hi", b"\xff\xff"):
                for _ in range(10):
                    async with raw(gateway.port, handshake("/ws")) as client:
                        await until(lambda: len(worker.visits) > 0, "the worker is dialled")
                        worker.visits.clear()
                        await client.send(frame)
                        assert b"101" not in await read_to_end(client)
            assert (await ask(gateway.port, "/healthz")).status == 200
            await until(lambda: gateway.status()["gates"]["default"]["pending"] == 0, "no permit is left")
            assert "Traceback" not in gateway.log()


async def test_log_has_no_line_for_a_client_neither_for_those_let_in_nor_for_the_malformed() -> None:
    async with echo_worker() as worker:
        with serving("rate = 1000", worker.url) as gateway:
            before = len(gateway.log().splitlines())
            for number in range(20):
                async with open_socket(gateway.port, f"/ws?access_token=secret{number}"):
                    pass
                async with raw(gateway.port, b"\0 garbage\r\n\r\n") as client:
                    await read_to_end(client)
                long = handshake("/ws", "Connection: Upgrade", "X: " + "a" * 20_000)
                assert await status_of(gateway, long) in (400, 431)
                assert await status_of(gateway, b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\n\r\n") == 426
            log = gateway.log()
            assert "secret" not in log
            assert len(log.splitlines()) - before <= 2
