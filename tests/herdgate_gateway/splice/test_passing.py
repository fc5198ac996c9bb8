"""What passes through the splice, and what each side gets to see of the other: real sockets."""

import asyncio
import os

import pytest
from websockets.asyncio.client import connect

from herdgate_gateway.headers import Forwarding
from tests.herdgate_gateway.gateways import Visitor, echo_worker, frame, scripted_worker, until
from tests.herdgate_gateway.handshakes import request
from tests.herdgate_gateway.splice.fronts import splice
from tests.wire import WAIT_S, handshake, open_socket, raw


@pytest.mark.parametrize("ws", ["websockets-sansio", "wsproto"])
async def test_messages_of_either_kind_and_any_size_come_back_as_they_were(ws: str) -> None:
    async with echo_worker(ws=ws) as worker, splice([worker.url]) as front:
        async with open_socket(front.port, "/ws") as client:
            for message in ("", "text", "ü" * 70_000, b"", b"\0\xff" * 300, b"x" * (1 << 20)):
                await client.send(message)
                assert await asyncio.wait_for(client.recv(), WAIT_S) == message
        await front.is_idle()
        assert worker.ended[0][0] == 1000


async def test_client_and_worker_compress_between_themselves() -> None:
    uri = "ws://127.0.0.1:{}/ws"
    async with (
        echo_worker() as worker,
        splice([worker.url]) as front,
        connect(uri.format(front.port), proxy=None, max_size=1 << 23) as client,
    ):
        assert [extension.name for extension in client.protocol.extensions] == ["permessage-deflate"]
        for message in ("", "x" * 100, "x" * (4 << 20), os.urandom(100_000)):
            await client.send(message)
            assert await asyncio.wait_for(client.recv(), WAIT_S) == message
        joint = await front.has_joined()
        joint.say("ours")
        assert await client.recv() == "ours", "not compressed, and understood"

    headers = dict(worker.seen[0]["headers"])
    assert b"permessage-deflate" in headers[b"sec-websocket-extensions"]


async def test_the_worker_chooses_the_subprotocol() -> None:
    async with (
        echo_worker(subprotocol="v2") as worker,
        splice([worker.url]) as front,
        open_socket(front.port, "/ws", subprotocols=["v1", "v2"]) as client,
    ):
        assert client.subprotocol == "v2"

    assert worker.seen[0]["subprotocols"] == ["v1", "v2"]


async def test_the_worker_sees_the_request_as_it_was_but_for_what_is_ours() -> None:
    shown = [
        ("Herdgate-Ticket", "1.abc"),
        ("X-Forwarded-For", "203.0.113.9"),
        ("X-Bar", "2"),
        ("Authorization", "Bearer x"),
    ]
    asked = request(target="/a%41b%20c?x=%2f&y", add=shown)
    async with (
        echo_worker() as worker,
        splice([worker.url], member="gateway-1") as front,
        raw(front.port, asked) as client,
    ):
        assert (await client.head())[0] == 101

    seen = worker.seen[0]
    headers = {name.decode(): value.decode() for name, value in seen["headers"]}
    assert (seen["raw_path"], seen["query_string"]) == (b"/a%41b%20c", b"x=%2f&y")
    assert [name for name, _ in seen["headers"]].count(b"host") == 1
    assert headers["host"] == headers["x-forwarded-host"] == "localhost"
    assert (headers["x-forwarded-for"], headers["x-forwarded-proto"]) == ("127.0.0.1", "http")
    assert (headers["x-bar"], headers["authorization"]) == ("2", "Bearer x")
    assert headers["herdgate-gateway"] == "gateway-1"
    assert "herdgate-ticket" not in headers


async def test_a_trusted_proxy_s_client_is_passed_on() -> None:
    shown = [("X-Forwarded-For", "198.51.100.1, 203.0.113.9"), ("X-Forwarded-Proto", "https")]
    async with (
        echo_worker() as worker,
        splice([worker.url], forwarding=Forwarding(["127.0.0.1"])) as front,
        open_socket(front.port, "/ws", headers=shown),
    ):
        pass

    headers = dict(worker.seen[0]["headers"])
    assert (headers[b"x-forwarded-for"], headers[b"x-forwarded-proto"]) == (b"203.0.113.9", b"https")


async def test_messages_in_the_same_segment_as_the_101_are_not_lost() -> None:
    async def eager(visit: Visitor) -> None:
        await visit.accept(then=frame(1, b"a") + frame(1, b"b", fin=False) + frame(0, b"c") + frame(8, b"\x03\xe8"))
        await visit.reader.read()

    async with (
        scripted_worker(eager) as worker,
        splice([worker.url]) as front,
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
        await visit.send(frame(1, (await visit.reader.readexactly(6 + 5))[6:]))
        await visit.reader.read()

    early = frame(1, b"early", mask=True)
    async with (
        scripted_worker(slow) as worker,
        splice([worker.url]) as front,
        raw(front.port, handshake("/ws") + early[:1]) as client,
    ):
        await until(lambda: bool(worker.visits), "the worker is dialled")
        await client.send(early[1:5])
        go.set()
        assert (await client.head())[0] == 101
        await client.send(early[5:])
        assert await client.frame() == (1, b"early")


async def test_pings_pass_both_ways() -> None:
    async def pinging(visit: Visitor) -> None:
        await visit.accept(then=frame(9, b"are you there"))
        assert (await visit.reader.readexactly(2))[0] == 0x8A
        await visit.reader.read()

    async with (
        scripted_worker(pinging) as worker,
        echo_worker() as echo,
        splice([worker.url]) as front,
        splice([echo.url]) as other,
    ):
        async with raw(front.port, handshake("/ws")) as client:
            await client.head()
            assert await client.frame() == (9, b"are you there")
            await client.send(frame(10, b"are you there", mask=True))
        async with open_socket(other.port, "/ws") as talking:
            await asyncio.wait_for(await talking.ping(), WAIT_S)


async def test_bytes_one_by_one_are_frames_all_the_same() -> None:
    stream = b"".join(frame(2, b"x" * size, mask=True) for size in (0, 5, 130)) + frame(9, b"p", mask=True)
    async with echo_worker() as worker, splice([worker.url]) as front, raw(front.port, handshake("/ws")) as client:
        await client.head()
        for byte in stream:
            await client.send(bytes((byte,)))
        expected = b"".join(frame(2, b"x" * size) for size in (0, 5, 130)) + frame(10, b"p")
        got = b""
        while len(got) < len(expected):
            got += await client.read()
        assert got == expected
