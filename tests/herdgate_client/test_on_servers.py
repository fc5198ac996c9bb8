"""The client against the real middleware and the real gateway, in real time: who obeys comes in, in order."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from herdgate import AdmissionClass, Limits
from herdgate_client import RefusedError, connect
from tests.board import Board, RemoteSite
from tests.herdgate_gateway.gateways import DEFAULT, echo_worker, gateway, until
from tests.wire import knock

CROWD = 200
RATE = 50


class Timed(ClientConnection):
    """Notes when it was dialled."""

    dialled = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note it."""
        self.dialled = time.monotonic()
        super().connection_made(transport)


class Member:
    """One client of a crowd.

    Attributes:
        due: when it was to come back, for each wait.
        early: seconds by which it came back before that.
        tries: handshakes until it was in, for each socket.
        socket: the one it holds.
    """

    def __init__(self, url: str) -> None:
        self.client = connect(url, on_retry=self._note, proxy=None, create_connection=Timed, compression=None)
        self.due: list[float] = []
        self.tries: list[int] = []
        self.early: list[float] = []
        self.socket: ClientConnection | None = None

    async def run(self) -> None:
        """Hold a socket until it is lost, for ever."""
        before = 0
        async with self.client as sockets:
            async for ws in sockets:
                assert isinstance(ws, Timed)
                if self.due and ws.dialled < self.due[-1]:
                    self.early.append(self.due[-1] - ws.dialled)
                self.tries.append(self.client.attempts - before)
                before = self.client.attempts
                self.socket = ws
                await ws.wait_closed()
                self.socket = None

    def _note(self, delay_s: float, why: str) -> None:
        self.due.append(time.monotonic() + delay_s - 0.001)  # told a moment before


@asynccontextmanager
async def crowd(url: str) -> AsyncIterator[list[Member]]:
    """Clients that begin in the same moment, and are cancelled in the end."""
    members = [Member(url) for _ in range(CROWD)]
    tasks = [asyncio.create_task(member.run()) for member in members]
    try:
        yield members
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert [end for end in ended if not isinstance(end, asyncio.CancelledError)] == []


async def all_in(members: list[Member]) -> float:
    """Seconds until all of them hold a socket."""
    start = time.monotonic()
    await until(lambda: all(member.socket for member in members), "all are in", within_s=20)
    return time.monotonic() - start


def cut(members: list[Member]) -> None:
    """End all sockets in the same moment, without a word."""
    for member in members:
        assert member.socket is not None
        member.socket.transport.abort()


def check(members: list[Member], seconds: float) -> None:
    """In order: as fast as the rate allows, in few tries, and nobody before its time."""
    assert (CROWD - RATE) / RATE - 1 <= seconds <= (CROWD - RATE) / RATE + 5
    assert [member.early for member in members if member.early] == []
    assert max(member.tries[-1] for member in members) <= 3
    assert sum(member.tries[-1] for member in members) <= 2.2 * CROWD


async def test_crowd_comes_back_in_order_to_the_middleware(board: Board) -> None:
    site = await board.site(limits={"rate": RATE})
    async with crowd(f"ws://127.0.0.1:{site.port}{site.path}/ws") as members:
        check(members, await all_in(members))
        await site.reaches(open=CROWD)
        cut(members)
        await site.is_idle()
        check(members, await all_in(members))
    report = await site.is_idle()
    assert report["admitted"] == 2 * CROWD
    assert sum(report["denied"].values()) == sum(sum(member.tries) for member in members) - 2 * CROWD


@pytest.mark.parametrize("leg", ["splice", "ours"])
async def test_crowd_comes_back_in_order_to_the_gateway(leg: str) -> None:
    async with echo_worker() as worker, gateway([worker.url], leg=leg, limits=Limits(RATE)) as front:
        async with crowd(f"ws://127.0.0.1:{front.port}/ws") as members:
            check(members, await all_in(members))
        await front.is_idle()
        snapshot = front.gate.snapshot()
        assert snapshot.admitted == CROWD == len(worker.seen)


async def crowded(board: Board, **settings: Any) -> RemoteSite:
    """A site whose only token for the next 2 s is gone."""
    site = await board.site(limits={"rate": 0.5, "burst": 1}, **settings)
    assert (await knock(site.port, site.path + "/ws")).status == 101
    return site


async def hammer(site: RemoteSite) -> None:
    """A newcomer, at once behind the one before."""
    while True:
        await knock(site.port, site.path + "/ws")


async def one_message(client: connect) -> str | bytes:
    """The echo of "hello" over the first socket that carries one."""
    async with client as sockets:
        async for ws in sockets:
            await ws.send("hello")
            return await ws.recv()
    raise AssertionError("the loop has ended")


async def test_ticket_brings_in_past_newcomers(board: Board) -> None:
    site = await crowded(board, max_wait_s=0)
    told: list[str] = []
    url = f"ws://127.0.0.1:{site.port}{site.path}/ws"
    newcomers = asyncio.create_task(hammer(site))
    try:
        client = connect(url, proxy=None, on_retry=lambda _, why: told.append(why))
        assert await asyncio.wait_for(one_message(client), 20) == "hello"
    finally:
        newcomers.cancel()
    assert told == ["HTTP 429 rate"] * (client.attempts - 1)
    assert client.attempts <= 3, "a hint, and a firm slot if there was no token"


async def test_close_denial_is_obeyed_like_any_other(board: Board) -> None:
    site = await crowded(board, max_wait_s=0)
    told: list[tuple[float, str]] = []
    client = connect(
        f"ws://127.0.0.1:{site.port}{site.path}/ws",
        origin="https://app.example",
        proxy=None,
        on_retry=lambda delay_s, why: told.append((delay_s, why)),
    )
    async with client as sockets:
        async for ws in sockets:
            if told:
                break
            await asyncio.wait_for(ws.wait_closed(), 5)
    ((delay_s, why),) = told
    assert (why, client.attempts) == ("closed with 1013", 2)
    assert 0 < delay_s <= 2.1


async def test_refused_origin_is_raised(board: Board) -> None:
    site = await board.site(limits={"rate": 100}, allowed_origins=["https://app.example"])
    client = connect(f"ws://127.0.0.1:{site.port}{site.path}/ws", origin="https://evil.example", proxy=None)
    with pytest.raises(RefusedError, match="HTTP 403 origin"):
        await one_message(client)
    assert (await site.report())["denied"] == {"origin": 1}


async def test_session_token_puts_a_client_before_newcomers() -> None:
    classes = (AdmissionClass("resume", 0.7), AdmissionClass("normal", 0.3))
    async with (
        echo_worker() as worker,
        gateway([worker.url], leg=DEFAULT.leg, limits=Limits(100, classes=classes)) as front,
        connect(f"ws://127.0.0.1:{front.port}/ws", proxy=None) as sockets,
    ):
        for _ in range(2):
            ws = await anext(sockets)
            ws.transport.abort()
            await ws.wait_closed()
        admitted = {klass: counts.admitted for klass, counts in front.gate.snapshot().classes.items()}
    assert admitted == {"resume": 1, "normal": 1}
