"""Probes: each asks until it is let in, and knows when that was."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from herdgate_loadtest.bench.routing.probes import EVERY_S, ids_in, reached
from herdgate_loadtest.servers.lease_table import shard_of

REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
SOURCE = "127.0.0.9"


@asynccontextmanager
async def gateway(serves: Callable[[int], bool | None]) -> AsyncIterator[tuple[str, Counter[int]]]:
    """Lets in where `serves` says so of a shard, and answers nothing where it says None: its URL, and who came."""
    came: Counter[int] = Counter()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        (name,) = parse_qs(urlsplit(head.split(" ")[1]).query)["id"]
        shard = shard_of(name)
        came[shard] += 1
        is_served = serves(shard)
        if is_served is None:
            return
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n" if is_served else REFUSAL)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/?id={{id}}", came


def test_there_is_an_id_in_every_shard() -> None:
    found = ids_in(range(1_024))

    assert sorted(found) == list(range(1_024))
    assert all(shard_of(name) == shard for shard, name in found.items())


async def test_each_shard_is_reached_when_it_is_served_and_not_asked_for_again() -> None:
    began = time.monotonic()
    opens = began + 4 * EVERY_S

    def serves(shard: int) -> bool:
        return shard < 5 or time.monotonic() >= opens

    async with gateway(serves) as (one, at_one), gateway(serves) as (other, at_other):
        served = await reached([one, other], range(10), SOURCE, 30)

    assert set(served) == set(range(10))
    assert max(served[shard] for shard in range(5)) < opens <= min(served[shard] for shard in range(5, 10))
    came = at_one + at_other
    assert all(came[shard] == 1 for shard in range(5))
    assert all(3 <= came[shard] <= 6 for shard in range(5, 10))
    assert not at_one & at_other
    assert len(at_one) == len(at_other) == 5


async def test_shard_that_nobody_serves_in_time_is_left_out() -> None:
    async with gateway(lambda shard: shard != 3) as (url, _):
        assert set(await reached([url], range(5), SOURCE, 1)) == {0, 1, 2, 4}


async def test_try_without_an_answer_is_given_up() -> None:
    asked: Counter[int] = Counter()

    def serves(shard: int) -> bool | None:
        asked[shard] += 1
        return True if asked[shard] > 1 else None

    async with gateway(serves) as (url, came):
        began = time.monotonic()
        served = await reached([url], [7], SOURCE, 30)
        assert served[7] - began > 2
        assert came[7] == 2


async def test_gateway_that_is_not_there_is_asked_again() -> None:
    async with gateway(lambda shard: True) as (url, _):
        pass
    assert await reached([url], [7], SOURCE, 0.6) == {}
