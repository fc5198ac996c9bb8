"""Limits per client of scope `fleet` as clients meet them: three uvicorn processes, one Redis, real sockets.

Users (header `x-user`) have a rate, those without a name a number of sockets for each address of this machine.
"""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus

from tests.redis_servers import RedisServer, redis_server
from tests.servers import Server, uvicorn
from tests.wire import Answer, eventually, handshake, knock, open_socket, raw

pytestmark = pytest.mark.xdist_group("fleet clients on servers")

BURST, CAP = 7, 3
LIMITS = {
    "rate": 10_000,
    "client": {"rate": 0.01, "burst": BURST, "scope": "fleet"},
    "anonymous": {"open": CAP, "scope": "fleet"},
}


def start(stack: ExitStack, redis: RedisServer) -> Server:
    fleet, middleware = {"redis": redis.url}, {"client_key": "x-user"}
    return stack.enter_context(uvicorn("tests.apps:alone", limits=LIMITS, fleet=fleet, middleware=middleware))


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with redis_server() as redis:
        yield redis


@pytest.fixture(scope="module")
def servers(redis: RedisServer) -> Iterator[Sequence[Server]]:
    with ExitStack() as stack:
        yield [start(stack, redis) for _ in range(3)]


@pytest.fixture
async def fleet(servers: Sequence[Server]) -> Sequence[Server]:
    """All of them admit, so they know of each other."""
    for server in servers:
        await admits(server)
    return servers


async def admits(server: Server) -> None:
    async def is_in() -> bool:
        return (await come(server, f"{time.monotonic_ns()}")).status == 101

    await eventually(is_in, "it admits")


async def come(server: Server, user: str) -> Answer:
    return await knock(server.port, "/ws", headers=[("x-user", user)])


@asynccontextmanager
async def crowd(
    servers: Sequence[Server], size: int, source: str
) -> AsyncIterator[tuple[list[ClientConnection], Counter[int]]]:
    """Sockets opened at the same time, at all servers in turn: those that are open, and how the others were refused."""
    held: list[ClientConnection] = []
    refused: Counter[int] = Counter()

    async def hold(server: Server) -> None:
        try:
            held.append(await open_socket(server.port, "/ws", source=source))
        except InvalidStatus as denial:
            refused[denial.response.status_code] += 1

    await asyncio.gather(*(hold(servers[number % len(servers)]) for number in range(size)))
    try:
        yield held, refused
    finally:
        await asyncio.gather(*(client.close() for client in held), return_exceptions=True)


async def has_room(server: Server, source: str, *, within_s: float) -> None:
    async def is_in() -> bool:
        return (await knock(server.port, "/ws", source=source)).status == 101

    await eventually(is_in, f"{source} has room", within_s=within_s)


async def test_exactly_the_burst_of_one_client_comes_in(fleet: Sequence[Server]) -> None:
    answers = await asyncio.gather(*(come(fleet[number % 3], "ann") for number in range(60)))
    assert Counter(answer.status for answer in answers) == {101: BURST, 429: 60 - BURST}
    refused = next(answer for answer in answers if answer.status == 429)
    assert refused.json()["reason"] == "client_rate"
    assert 90 < int(refused.headers["retry-after"]) <= 111
    assert refused.headers["ratelimit-policy"] == f'"client";q={BURST};w=700'


async def test_cap_is_exact_under_a_crowd_at_all_processes(fleet: Sequence[Server]) -> None:
    source = "127.0.0.2"
    for _ in range(3):
        async with crowd(fleet, 100, source) as (held, refused):
            assert (len(held), refused) == (CAP, {429: 100 - CAP})
            assert (await knock(fleet[0].port, "/ws", source=source)).json()["reason"] == "client_open"
        await has_all_room(fleet, source)


async def has_all_room(fleet: Sequence[Server], source: str) -> None:
    async def are_in() -> bool:
        async with crowd(fleet, CAP, source) as (held, _):
            return len(held) == CAP

    await eventually(are_in, "all places are free")


async def test_places_of_a_killed_process_are_free_again(fleet: Sequence[Server], redis: RedisServer) -> None:
    """Case 5.1: nothing has to be repaired, and those of the others stay."""
    source = "127.0.0.3"
    with ExitStack() as stack:
        doomed = start(stack, redis)
        await admits(doomed)
        async with crowd([doomed], CAP - 1, source) as (lost, _), crowd(fleet[:1], 1, source) as ((stays,), _):
            assert len(lost) == CAP - 1
            assert (await knock(fleet[1].port, "/ws", source=source)).status == 429
            os.kill(doomed.pid, signal.SIGKILL)
            began = time.monotonic()
            await has_room(fleet[1], source, within_s=12)
            assert time.monotonic() - began > 5, "not before they are over"
            async with crowd(fleet, 20, source) as (held, _):
                assert len(held) == CAP - 1
            await stays.send("still here")
            assert await stays.recv() == "still here"


@pytest.mark.parametrize("path", ["/ws", "/slow?s=0.2", "/stream", "/raise-before", "/raise-after", "/cancelled"])
async def test_clients_that_leave_rudely_hold_nothing(fleet: Sequence[Server], path: str) -> None:
    """Case 5.2: before the verdict, during the set-up, and after it."""
    source = f"127.0.1.{1 + len(path)}"
    for number in range(30):
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await leave(fleet[number % 3].port, path, source, late=number % 2 == 1)
    await has_room(fleet[0], source, within_s=2)
    await has_all_room(fleet, source)


async def leave(port: int, path: str, source: str, *, late: bool) -> None:
    """Send a handshake, perhaps wait for some answer, and reset the connection."""
    async with raw(port, handshake(path), source=source) as client:
        if late:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    await client.read()
        client.reset()
