"""What passes through the relay, and what each side gets to see of the other: real sockets."""

import asyncio

import pytest
from websockets.asyncio.client import connect

from tests.herdgate_gateway.gateways import (
    CLIENT_LEGS,
    MESSAGE_LEGS,
    Visitor,
    echo_worker,
    frame,
    gateway,
    scripted_worker,
    until,
)
from tests.herdgate_gateway.handshakes import request
from tests.wire import WAIT_S, ask, knock, open_socket, raw

pytestmark = pytest.mark.usefixtures("both_relays")


@pytest.mark.parametrize("leg", CLIENT_LEGS)
async def test_messages_of_either_kind_and_any_size_come_back_as_they_were(leg: str) -> None:
    async with echo_worker() as worker, gateway([worker.url], leg=leg) as front:
        async with open_socket(front.port, "/ws") as client:
            for message in ("", "text", "ü" * 70_000, b"", b"\0\xff" * 300, b"x" * (1 << 20)):
                await client.send(message)
                assert await asyncio.wait_for(client.recv(), WAIT_S) == message
        await front.is_idle()


@pytest.mark.parametrize("leg", MESSAGE_LEGS)
async def test_case_6_8_each_leg_negotiates_its_own_extensions(leg: str) -> None:
    async with (
        echo_worker() as worker,
        gateway([worker.url], leg=leg) as front,
        connect(f"ws://127.0.0.1:{front.port}/ws", proxy=None, max_size=1 << 21) as client,
    ):
        assert bool(client.protocol.extensions) is (leg != "ours"), "the client offers deflate"
        for size in (1, 125, 126, 65_536, 1 << 20):
            await client.send("x" * size)
            assert await asyncio.wait_for(client.recv(), WAIT_S) == "x" * size

    names = [name for name, _ in worker.seen[0]["headers"]]
    assert b"sec-websocket-extensions" not in names, "the worker's leg is offered none"


async def test_case_6_6_no_empty_subprotocol_header() -> None:
    async def strict(visit: Visitor) -> None:
        await visit.accept(then=frame(1, b"%d" % len(visit.header("sec-websocket-protocol"))))
        await visit.reader.read(1)

    async with (
        scripted_worker(strict) as worker,
        gateway([worker.url]) as front,
        open_socket(front.port, "/ws") as client,
    ):
        assert await client.recv() == "0"


@pytest.mark.parametrize("leg", CLIENT_LEGS)
async def test_the_worker_chooses_the_subprotocol(leg: str) -> None:
    async with (
        echo_worker(subprotocol="v2") as worker,
        gateway([worker.url], leg=leg) as front,
        open_socket(front.port, "/ws", subprotocols=["v1", "v2"]) as client,
    ):
        assert client.subprotocol == "v2"

    assert worker.seen[0]["subprotocols"] == ["v1", "v2"]


@pytest.mark.parametrize("leg", CLIENT_LEGS)
async def test_a_worker_that_chooses_none_leaves_the_client_without(leg: str) -> None:
    async with (
        echo_worker() as worker,
        gateway([worker.url], leg=leg) as front,
        open_socket(front.port, "/ws", subprotocols=["v1"]) as client,
    ):
        assert client.subprotocol is None


@pytest.mark.parametrize("leg", CLIENT_LEGS)
async def test_the_worker_sees_the_request_as_it_was_but_for_what_is_ours(leg: str) -> None:
    shown = [
        ("Connection", "keep-alive, Upgrade"),
        ("Herdgate-Ticket", "1.abc"),
        ("Cookie", "a=1; herdgate_ticket_default=1.abc; b=2"),
        ("X-Forwarded-For", "203.0.113.9"),
        ("X-Forwarded-Proto", "https"),
        ("X-Bar", "2"),
        ("Authorization", "Bearer x"),
    ]
    asked = request(target="/a%41b%20c?x=%2f&herdgate_ticket=1.abc&y", drop="Connection", add=shown)
    async with (
        echo_worker() as worker,
        gateway([worker.url], leg=leg) as front,
        raw(front.port, asked) as client,
    ):
        assert (await client.head())[0] == 101

    seen = worker.seen[0]
    headers = {name.decode(): value.decode() for name, value in seen["headers"]}
    assert (seen["raw_path"], seen["query_string"]) == (b"/a%41b%20c", b"x=%2f&y")
    assert [name for name, _ in seen["headers"]].count(b"host") == 1
    assert headers["host"] == headers["x-forwarded-host"] == "localhost"
    assert headers["x-forwarded-for"] == "127.0.0.1"
    assert headers["x-forwarded-proto"] == "http"
    assert headers["cookie"] == "a=1; b=2"
    assert (headers["x-bar"], headers["authorization"]) == ("2", "Bearer x")
    assert "herdgate-ticket" not in headers


async def test_a_trusted_proxy_s_client_is_passed_on() -> None:
    shown = [("X-Forwarded-For", "198.51.100.1, 203.0.113.9"), ("X-Forwarded-Proto", "https")]
    async with (
        echo_worker() as worker,
        gateway([worker.url], trusted_proxies=["127.0.0.1"]) as front,
        open_socket(front.port, "/ws", headers=shown),
    ):
        pass

    headers = dict(worker.seen[0]["headers"])
    assert headers[b"x-forwarded-for"] == b"203.0.113.9"
    assert headers[b"x-forwarded-proto"] == b"https"


@pytest.mark.parametrize("leg", CLIENT_LEGS)
async def test_what_the_worker_s_101_says_reaches_the_client(leg: str) -> None:
    said = [(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"x-session", b"7"), (b"x-hop", b"1")]
    said.append((b"connection", b"x-hop"))
    async with (
        echo_worker(headers=said) as worker,
        gateway([worker.url], leg=leg) as front,
        open_socket(front.port, "/ws") as client,
    ):
        assert client.response is not None
        headers = client.response.headers

    assert headers.get_all("set-cookie") == ["a=1", "b=2"]
    assert headers["x-session"] == "7"
    assert "x-hop" not in headers
    for name in ("date", "server", "sec-websocket-accept", "upgrade", "connection"):
        assert len(headers.get_all(name)) <= 1, name


async def test_a_message_in_the_same_segment_as_the_101_is_not_lost() -> None:
    async def eager(visit: Visitor) -> None:
        await visit.accept(then=frame(1, b"a") + frame(1, b"b", fin=False) + frame(0, b"c") + frame(8, b"\x03\xe8"))
        await visit.reader.read()

    async with (
        scripted_worker(eager) as worker,
        gateway([worker.url]) as front,
        open_socket(front.port, "/ws") as client,
    ):
        assert [await client.recv(), await client.recv()] == ["a", "bc"]
        await asyncio.wait_for(client.wait_closed(), WAIT_S)
        assert client.close_code == 1000


async def test_a_client_that_speaks_before_its_101_is_heard() -> None:
    go = asyncio.Event()

    async def slow(visit: Visitor) -> None:
        await visit.read_head()
        await go.wait()
        await visit.accept()
        _, length = await visit.reader.readexactly(2)
        mask = await visit.reader.readexactly(4)
        data = await visit.reader.readexactly(length & 127)
        await visit.send(frame(1, bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))))
        await visit.reader.read()

    async with scripted_worker(slow) as worker, gateway([worker.url]) as front, raw(front.port, request()) as client:
        await until(lambda: bool(worker.visits), "the worker is dialled")
        await client.send(frame(1, b"early", mask=True))
        go.set()
        assert (await client.head())[0] == 101
        assert await client.frame() == (1, b"early")


@pytest.mark.parametrize("leg", MESSAGE_LEGS)
async def test_case_6_19_a_quiet_socket_sees_no_ping_and_the_application_s_pass_as_messages(leg: str) -> None:
    got: list[bytes] = []

    async def listener(visit: Visitor) -> None:
        await visit.accept()
        await visit.send(frame(9, b"are you there"))
        while data := await visit.reader.read(100):
            got.append(data)

    async with (
        scripted_worker(listener) as worker,
        gateway([worker.url], leg=leg) as front,
        open_socket(front.port, "/ws") as client,
    ):
        await until(lambda: bool(got), "the worker's ping is answered on its own leg")
        assert got[0][0] == 0x8A
        await client.send('{"type": "ping"}')
        await (await client.ping())
        await until(lambda: len(got) > 1, "a ping of the application is a message")
        assert got[1][0] == 0x81


async def test_a_plain_request_is_told_what_is_spoken_here() -> None:
    async with echo_worker() as worker, gateway([worker.url]) as front:
        answer = await ask(front.port, "/ws")

    assert answer.status == 426
    assert answer.headers["upgrade"] == "websocket"
    assert not worker.seen


async def test_arrivals_are_spread_over_the_workers() -> None:
    async with echo_worker() as one, echo_worker() as two, gateway([one.url, two.url]) as front:
        async with open_socket(front.port, "/a"), open_socket(front.port, "/b"), open_socket(front.port, "/c"):
            loads = [worker.open for worker in front.pool.snapshot()]
            assert sorted(loads) == [1, 2]
            assert front.gate.snapshot().open == 3
        await front.is_idle()
        assert {(await knock(front.port, "/ws")).status for _ in range(2)} == {101}
    assert abs(len(one.seen) - len(two.seen)) <= 1
