"""Tries without an orderly answer, and servers that break the rules."""

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from herdgate_loadtest.engine import Attempt, Crowd, CrowdConfig
from herdgate_loadtest.errors import CrowdError
from tests.herdgate_loadtest.engine.crowds import Once, admit, crowd_of, say_nothing, spoiled
from tests.herdgate_loadtest.engine.servers import Peer, Server, eventually, server_frame, serving

pytestmark = pytest.mark.usefixtures("quick_settling")


def garbage(peer: Peer) -> None:
    peer.send(b"SSH-2.0-OpenSSH_9.2\r\n")


def redirect(peer: Peer) -> None:
    peer.send(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")


def half_an_answer(peer: Peer) -> None:
    peer.send(b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 10\r\n\r\nhalf")
    peer.transport.close()


def foreign_accept(peer: Peer) -> None:
    peer.headers["sec-websocket-key"] = "AAAA"
    peer.admit()


@pytest.mark.parametrize(
    ("fault", "answer"),
    [
        (Peer.reset, "reset"),
        (garbage, "the answer is not HTTP/1"),
        (redirect, "the answer is a 302"),
        (half_an_answer, "the connection ended within the answer"),
        (lambda peer: peer.transport.close(), "the connection ended without an answer"),
        (foreign_accept, "101 with the wrong Sec-WebSocket-Accept"),
        (say_nothing, "timeout"),
    ],
)
async def test_try_without_an_orderly_answer_has_failed_and_is_repeated(
    fault: Callable[[Peer], None], answer: str
) -> None:
    attempts: list[Attempt] = []
    async with (
        serving(Once(fault)) as server,
        crowd_of(server, behaviour="immediate", timeout_s=0.3, observe=attempts.append) as crowd,
    ):
        await crowd.bring_up()
        assert [(attempt.outcome, attempt.answer) for attempt in attempts] == [("failed", answer), ("admitted", "101")]
        record = crowd.record(rate=1, burst=1)
        assert (record.failed, record.denied, record.attempts_per_client) == (1, 0, 2.0)
        assert not spoiled(record), "the server failed, not the generator"
        await eventually(lambda: len(server.peers) == 1)


async def test_refused_connection_has_failed() -> None:
    async with serving(admit) as server:
        url = server.url
    async with Crowd(CrowdConfig(urls=(url,), clients={"immediate": 3})) as crowd:
        with pytest.raises(CrowdError, match=r"refused: \d+"):
            await crowd.bring_up(deadline_s=0.3)
        assert crowd.snapshot().failed >= 3


async def test_crowd_gives_up_where_everybody_was_refused_for_two_seconds() -> None:
    async with serving(admit) as one, serving(admit) as two:
        urls = (one.url, two.url)
    async with Crowd(CrowdConfig(urls=urls, clients={"immediate": 3})) as crowd:
        began = time.monotonic()
        with pytest.raises(CrowdError, match=r"^nobody listens at 127[.0-9:]+, 127[.0-9:]+ \(refused: \d+\): start"):
            await crowd.bring_up(deadline_s=100)
        assert 2.0 <= time.monotonic() - began < 20.0


async def test_server_that_starts_a_little_later_is_waited_for() -> None:
    async with serving(admit) as server:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
    late = Server(admit)
    async with Crowd(CrowdConfig(urls=(server.url,), clients={"immediate": 3})) as crowd:
        coming_up = asyncio.create_task(crowd.bring_up())
        await asyncio.sleep(0)  # now it has begun
        await eventually(lambda: crowd.snapshot().failed >= 3)
        listener = await asyncio.get_running_loop().create_server(lambda: Peer(late), "127.0.0.1", port)
        await coming_up
        assert crowd.snapshot().open == 3
    listener.close()
    await eventually(lambda: not late.peers)


async def test_connection_that_takes_its_time_is_waited_for() -> None:
    """A full accept queue: the kernel drops the SYN and repeats it after a second."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    address = listener.getsockname()
    fillers = [socket.socket() for _ in range(3)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(address)
    config = CrowdConfig(urls=(f"ws://127.0.0.1:{address[1]}/",), clients={"obey": 1}, timeout_s=10.0)
    server = Server(admit)
    async with Crowd(config) as crowd:
        coming_up = asyncio.create_task(crowd.bring_up())
        await asyncio.sleep(0)  # now it has begun
        await eventually(lambda: crowd.snapshot().dialling == 1)
        serving_late = await asyncio.get_running_loop().create_server(lambda: Peer(server), sock=listener)
        await coming_up
        assert crowd.record(rate=1, burst=1).attempts_per_client == 1.0
        assert crowd.record(rate=1, burst=1).behaviours["obey"].wait_p50_s > 0.5
        for filler in fillers:
            filler.close()
    serving_late.close()
    await eventually(lambda: not server.peers)


async def test_ticket_outlives_a_failed_try() -> None:
    def misbehave(peer: Peer) -> None:
        if peer.ticket is None:
            peer.deny(retry_ms=10, ticket="1.abc")
        else:
            peer.reset()

    async with serving(Once(misbehave, times=2)) as server, crowd_of(server) as crowd:
        await crowd.bring_up()
        assert [peer.ticket for peer in server.handshakes] == [None, "1.abc", "1.abc"]


async def test_answer_split_at_every_byte_is_understood() -> None:
    def dribble(peer: Peer) -> None:
        send = peer.send
        parts: list[bytes] = []
        peer.send = lambda *data: parts.extend(data)  # type: ignore[method-assign]
        peer.admit(server_frame(9, b"hello"))
        data = b"".join(parts)
        for i in range(len(data)):
            asyncio.get_running_loop().call_later(i * 2e-4, send, data[i : i + 1])

    async with serving(dribble) as server, crowd_of(server) as crowd:
        await crowd.bring_up()
        await eventually(lambda: bool(server.peers[0].received))
        assert server.peers[0].received[0] == 0x8A, "the ping is answered"


async def test_messages_and_pings_leave_a_client_where_it_is() -> None:
    async with serving(admit) as server, crowd_of(server, 3) as crowd:
        await crowd.bring_up()
        for peer in server.peers:
            peer.send(server_frame(1, b"a", first=0), server_frame(9, b"p"), server_frame(0, b"b"))
        await eventually(lambda: all(peer.received for peer in server.peers))
        mask, payload = server.peers[0].received[2:6], server.peers[0].received[6:]
        assert bytes(byte ^ mask[i] for i, byte in enumerate(payload)) == b"p"
        assert crowd.snapshot().open == 3


async def test_server_that_breaks_the_protocol_loses_the_client() -> None:
    async with serving(admit) as server, crowd_of(server) as crowd:
        await crowd.bring_up()
        crowd.cut("observe")
        server.peers[0].send(b"\xff\xff")
        assert await crowd.recover(deadline_s=5)
        assert crowd.snapshot().lost == 1


async def test_generator_that_runs_out_of_descriptors_spoils_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from herdgate_loadtest.engine.dialer import Dialer

    dial, left = Dialer.open, [2]

    def run_out(*args: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise OSError(24, "Too many open files")
        return dial(*args)

    monkeypatch.setattr(Dialer, "open", run_out)
    async with serving(admit) as server, crowd_of(server, 5, behaviour="immediate") as crowd:
        await crowd.bring_up()
        record = crowd.record(rate=1, burst=1)
        assert record.failed == 2
        assert spoiled(record) == ["the generator ran out: EMFILE on 2 tries"]
