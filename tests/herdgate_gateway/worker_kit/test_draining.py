"""A worker that drains before anybody stops it: it gives all away, stays, and ends when it is told to stop."""

import asyncio

import pytest

from tests.herdgate_gateway.worker_kit.serving_worker import SHARDS, Board, Table, Working, closed, serving, until
from tests.herdgate_gateway.worker_kit.test_stopping import moments, pair
from tests.wire import ask, eventually


async def state(working: Working) -> str:
    row = await working.table.worker("w")
    assert row is not None
    return row.st


async def test_drained_worker_stays_has_nothing_takes_nothing_and_ends_at_sigterm() -> None:
    async with pair() as (one, other):
        epochs = {shard: one.epoch(shard) for shard in range(SHARDS)}
        clients = {shard: await one.open(shard) for shard in range(SHARDS)}
        waiting = asyncio.ensure_future(moments(dict(clients)))
        one.worker.begin_drain("file", 2.0)
        assert len(await waiting) == SHARDS
        await until(lambda: len(other.owner.held) == SHARDS, "the other one has all")
        await eventually_dead(one)
        assert one.owner.held == ()
        assert not one.running.done()
        assert (await one.knock(3, epochs[3])).status == 421
        assert (await ask(one.port, "/")).status == 200, "health checks go on"
        async with other.open(3) as client:
            await client.send("hello")
            assert await client.recv() == "hello"
        await one.worker.stop()
        await asyncio.wait_for(asyncio.shield(one.running), 10)
        assert len(other.owner.held) == SHARDS


async def eventually_dead(working: Working) -> None:
    async def is_dead() -> bool:
        return await state(working) == "DEAD"

    await eventually(is_dead, "its row says that it is dead")


async def test_drain_has_its_own_time() -> None:
    async with pair(stop_s=60.0) as (one, _):
        clients = {shard: await one.open(shard) for shard in range(SHARDS)}
        loop, waiting = asyncio.get_running_loop(), asyncio.ensure_future(moments(dict(clients)))
        began = loop.time()
        one.worker.begin_drain("file", 4.0)
        last = max((await waiting).values()) - began
        assert 1.2 < last < 3.6, "without a rate they are spread over half of the time"


async def test_sigterm_on_the_way_brings_its_own_deadline() -> None:
    async with pair(stop_s=3.0) as (one, _):
        clients = {shard: await one.open(shard) for shard in range(SHARDS)}
        loop, waiting = asyncio.get_running_loop(), asyncio.ensure_future(moments(dict(clients)))
        one.worker.begin_drain("file", 600.0)
        await until(lambda: len(one.owner.held) < SHARDS, "it has begun")
        assert len(one.owner.held) > 1, "and waits for a long time"
        began = loop.time()
        await one.worker.stop()
        await asyncio.wait_for(asyncio.shield(one.running), 10)
        at = sorted(moment - began for moment in (await waiting).values())
        assert at[-1] < 9
        assert len({round(moment, 1) for moment in at}) >= 4, "one after the other all the same"


async def test_a_later_deadline_changes_nothing_and_neither_does_a_drain_told_twice() -> None:
    async with pair(stop_s=600.0) as (one, _):
        clients = {shard: await one.open(shard) for shard in range(SHARDS)}
        waiting = asyncio.ensure_future(moments(dict(clients)))
        one.worker.begin_drain("file", 3.0)
        one.worker.begin_drain("sign", 0.1)
        await until(lambda: len(one.owner.held) < SHARDS, "it has begun")
        assert len(one.owner.held) > 1, "the second one would be over"
        await one.worker.stop()
        await asyncio.wait_for(asyncio.shield(one.running), 10)
        assert len(await waiting) == SHARDS


async def test_second_sign_hurries_a_drain_too() -> None:
    async with pair(stop_s=600.0) as (one, other):
        clients = {shard: await one.open(shard) for shard in range(SHARDS)}
        waiting = asyncio.ensure_future(moments(dict(clients)))
        one.worker.begin_drain("file", 600.0)
        await until(lambda: len(one.owner.held) < SHARDS, "it has begun")
        await one.worker.stop()
        await one.worker.stop()
        await asyncio.wait_for(asyncio.shield(one.running), 5)
        assert len(await waiting) == SHARDS
        await until(lambda: len(other.owner.held) == SHARDS, "the other one has all")


async def test_drain_before_it_has_started_never_takes_a_shard() -> None:
    table = Table()
    async with serving(Board(), table=table, waits=False) as worker:
        worker.worker.begin_drain("file", 5.0)
        await until(lambda: hasattr(worker, "duty") and is_listening(worker), "its app has started")
        assert (await ask(worker.port, "/")).status == 200
        async with serving(Board(), table=table, name="v") as other:
            assert len(other.owner.held) == SHARDS
            assert worker.owner.held == ()
            assert await table.worker("w") is None, "it has never been there"
            await worker.worker.stop()
            await asyncio.wait_for(asyncio.shield(worker.running), 10)


def is_listening(working: Working) -> bool:
    return not working.running.done() and working.duty._server.started


async def test_worker_that_is_alone_lets_go_of_all_at_once_and_who_comes_next_has_it() -> None:
    async with serving(Board()) as worker:
        client = await worker.open(3)
        worker.worker.begin_drain("sign", 30.0)
        assert await asyncio.wait_for(closed(client), 10) == (1012, "shard moved")
        async with serving(Board(), table=worker.table, name="v") as other:
            assert len(other.owner.held) == SHARDS


async def test_steps_are_in_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    heard: list[str] = []

    def is_said() -> bool:
        heard.append(capfd.readouterr().err)
        return ": drained" in "".join(heard)

    async with pair() as (one, _):
        one.worker.begin_drain("file", 2.0)
        await until(is_said, "it is drained")
    began, ended = [line for line in "".join(heard).splitlines() if "drain, " in line]
    assert began.endswith("drain, 0.0 s, 0 sockets open: the file: to be over within 2 s")
    assert ended.endswith(" s, 0 sockets open: drained: owns nothing, and takes nothing any more")
