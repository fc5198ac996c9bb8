"""A worker that stops in good order, beside another one that takes over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from herdgate_gateway.leases.rows import WorkerRow
from tests.herdgate_gateway.worker_kit.serving_worker import SHARDS, Board, Table, Working, closed, serving, until


@asynccontextmanager
async def pair(*, stop_s: float = 4.0, rate: float | None = None) -> AsyncIterator[tuple[Working, Working]]:
    """The first one owns everything, the second one has just come."""
    table = Table()
    others: list[Working] = []

    def carry(row: WorkerRow, shard: int) -> None:
        for each in others:
            if each.owner.life is not None and each.row.inc == row.inc:
                asyncio.get_running_loop().call_soon(each.owner.notice, [shard])

    async with (
        serving(Board(), table=table, stop_s=stop_s, rate=rate, carry=carry) as one,
        serving(Board(), table=table, name="v", carry=carry, waits=False) as other,
    ):
        others += [one, other]
        await until(lambda: other.owner.life is not None and other.owner.life.may_act(), "the other one is up")
        await asyncio.sleep(0.3)  # both have seen each other
        assert len(one.owner.held) == SHARDS
        yield one, other


async def moments(clients: dict[int, object]) -> dict[int, float]:
    """When each of them is closed, by shard; all with the same word."""
    loop = asyncio.get_running_loop()

    async def wait(client: object) -> float:
        assert await closed(client) == (1012, "shard moved")
        return loop.time()

    waited = await asyncio.gather(*map(wait, clients.values()))
    return dict(zip(clients, waited, strict=True))


async def test_fifty_sockets_move_at_a_pace_and_their_shards_are_handed_over() -> None:
    async with pair(stop_s=4.0) as (one, other):
        clients = {number: await one.open(number % SHARDS) for number in range(50)}
        loop, waiting = asyncio.get_running_loop(), asyncio.ensure_future(moments(dict(clients)))
        began = loop.time()
        await one.worker.stop()
        await asyncio.wait_for(asyncio.shield(one.running), 10)
        took = loop.time() - began
        at = await waiting
        assert took < 7.0
        first, last = min(at.values()) - began, max(at.values()) - began
        assert first < 1.2
        assert 1.2 < last < 3.6, "without a rate they are spread over half of the time"
        by_shard = sorted({round(moment - began, 1) for moment in at.values()})
        assert len(by_shard) >= 5, "one shard after the other"
        await until(lambda: len(other.owner.held) == SHARDS, "the other one has all")
        assert {(await one.table.shard(shard)).owner for shard in range(SHARDS)} == {"v"}
        row = await one.table.worker("w")
        assert row is not None
        assert row.st == "DEAD"


async def test_half_of_a_known_rate_is_taken() -> None:
    async with pair(stop_s=20.0, rate=40.0) as (one, _):
        clients = {number: await one.open(number % SHARDS) for number in range(24)}  # 3 in each of the shards
        loop, waiting = asyncio.get_running_loop(), asyncio.ensure_future(moments(dict(clients)))
        began = loop.time()
        await one.worker.stop()
        at = sorted(moment - began for moment in (await waiting).values())
        for number, moment in enumerate(at):
            assert moment > (number - 3) / 20 - 0.05, f"socket {number} of {at}"
        assert at[-1] < 6


async def test_shards_without_sockets_go_at_once_and_others_serve_until_their_turn() -> None:
    async with pair(stop_s=6.0) as (one, other):
        clients = {shard: await one.open(shard) for shard in (0, 1, 2)}
        waiting, stopping = asyncio.ensure_future(moments(dict(clients))), asyncio.ensure_future(one.worker.stop())
        await until(lambda: len(other.owner.held) >= SHARDS - 3, "those without sockets are there", within_s=2.0)
        row = await one.table.worker("w")
        assert row is not None
        assert row.st == "DRAINING"
        last = max(one.owner.held)
        async with one.open(last) as late:
            await late.send("hello")
            assert await late.recv() == "hello"
        await stopping
        assert len(await waiting) == 3


async def test_second_sign_hands_the_rest_over_at_once() -> None:
    async with pair(stop_s=60.0) as (one, other):
        clients = {shard: await one.open(shard) for shard in range(SHARDS)}
        loop, waiting = asyncio.get_running_loop(), asyncio.ensure_future(moments(dict(clients)))
        began, stopping = loop.time(), asyncio.ensure_future(one.worker.stop())
        await until(lambda: len(one.owner.held) < SHARDS, "it has begun")
        assert len(one.owner.held) > 1, "and has not ended"
        await one.worker.stop()
        await stopping
        assert max((await waiting).values()) - began < 5
        await until(lambda: len(other.owner.held) == SHARDS, "the other one has all")


async def test_nothing_of_it_outlasts_its_time_even_if_nobody_knows_what_came_of_a_hand_over() -> None:
    async with pair(stop_s=2.0) as (one, _):
        client = await one.open(3)
        one.table.holds = lambda write: write.key.sk == "@"
        await one.worker.stop()
        await asyncio.wait_for(asyncio.shield(one.running), 2.5 + 4)
        assert await closed(client) == (1012, "shard moved")


async def test_worker_that_is_alone_closes_all_at_once() -> None:
    async with serving(Board(), stop_s=30.0) as worker:
        client = await worker.open(3)
        began = asyncio.get_running_loop().time()
        await worker.worker.stop()
        await asyncio.wait_for(asyncio.shield(worker.running), 10)
        assert await closed(client) == (1012, "shard moved")
        assert asyncio.get_running_loop().time() - began < 9


async def test_app_is_shut_down_after_its_sockets() -> None:
    said: list[str] = []
    board = Board()

    async def app(scope: object, receive: object, send: object) -> None:
        if scope["type"] != "lifespan":  # type: ignore[index]
            try:
                await board(scope, receive, send)  # type: ignore[arg-type]
            finally:
                said.append("socket")
            return
        for what in ("startup", "shutdown"):
            await receive()  # type: ignore[operator]
            said.append(what)
            await send({"type": f"lifespan.{what}.complete"})  # type: ignore[operator]

    async with serving(app) as worker:
        assert said == ["startup"]
        client = await worker.open(3)
        await worker.worker.stop()
        await asyncio.wait_for(asyncio.shield(worker.running), 10)
        assert await closed(client) == (1012, "shard moved")
    assert said == ["startup", "socket", "shutdown"]


@pytest.mark.parametrize("signs", [1, 2])
async def test_sign_while_it_waits_for_its_name_ends_it(signs: int) -> None:
    async with serving(Board()) as first:
        async with serving(Board(), table=first.table, lease_s=30.0, waits=False) as second:
            for _ in range(signs):
                await second.worker.stop()
            await asyncio.wait_for(asyncio.shield(second.running), 10)
        assert len(first.owner.held) == SHARDS
