"""`herdgate worker`: real processes with guardians, a real table, a real Redis."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from herdgate_gateway.leases.dynamo import Place
from herdgate_gateway.leases.rows import SHARDS
from tests.dynamodb import DynamoServer, dynamodb
from tests.herdgate_gateway.leases.conftest import place
from tests.herdgate_gateway.worker_kit.serving_worker import closed, id_in, stamp, until
from tests.herdgate_gateway.worker_kit.worker_processes import Site, WorkerProcess, worker_process
from tests.redis_servers import redis_server
from tests.servers import poll
from tests.wire import knock, open_socket

__all__ = ["dynamodb", "place"]

pytestmark = pytest.mark.xdist_group("worker-processes")


@pytest.fixture
def site(dynamodb: DynamoServer, place: Place, tmp_path: Path) -> Iterator[Site]:
    with redis_server() as redis:
        yield Site(dynamodb, place, redis, tmp_path)


def owns_all(site: Site, *workers: WorkerProcess) -> None:
    def are_owned() -> bool:
        return sum(len(site.owned(worker.name)) for worker in workers) == SHARDS

    poll(are_owned, f"all shards are owned by {[worker.name for worker in workers]}", within_s=40)


def put_connection(site: Site, shard: int) -> str:
    """A row, for an app that checkpoints."""
    name = id_in(shard)
    key = {"pk": {"S": f"default#S#{shard:04d}"}, "sk": {"S": f"C#{name}"}, "want": {"S": "STARTED"}}
    status, reply = site.dynamodb.ask("PutItem", TableName=site.place.table, Item=key)
    assert status == 200, reply
    return name


def told_shards(heard: list[Any]) -> set[str]:
    return {shard for news in heard if "owner" in news for shard in news["epochs"]}


async def test_one_worker_serves_reports_and_tells_gateways(site: Site) -> None:
    heard: list[Any] = []
    redis = Redis.from_url(site.redis.url)

    async def listen() -> None:
        async with redis.pubsub() as channel:
            await channel.subscribe("herdgate:leases:default")
            async for message in channel.listen():
                heard.extend(json.loads(text) for text in [message["data"]] if message["type"] == "message")

    listening = asyncio.ensure_future(listen())
    try:
        with worker_process(site, "one", "--capacity", "7") as one:
            await asyncio.to_thread(owns_all, site, one)
            epochs = site.owned("one")
            name = put_connection(site, 3)
            async with open_socket(one.port, "/", headers=stamp(3, epochs[3])) as client:
                await client.send("41")
                assert await client.recv() == "41"
                await until(lambda: site.state("one") == ("UP", 1), "a beat tells its load", within_s=20)
                report = f"{{herdgate:default}}:worker:{one.addr}"
                await until(
                    lambda: site.redis.command("HGET", report, "open") == b"1",
                    "the fleet is told its load",
                    within_s=20,
                )
                assert site.redis.command("HGET", report, "capacity") == b"7"
            (row,) = [row for row in site.rows() if row["sk"] == f"C#{name}"]
            assert (row["last_seq"], int(row["epoch"])) == ("41", epochs[3])
            every = set(map(str, range(SHARDS)))
            await until(lambda: told_shards(heard) == every, "gateways are told of all shards")
            told = [news for news in heard if "owner" in news]
            assert {(news["owner"]["worker"], news["owner"]["addr"]) for news in told} == {("one", one.addr)}
            assert len(told) < SHARDS / 4, "many in one message"
            one.guardian.terminate()
            assert await asyncio.to_thread(one.end) == 0
            assert site.state("one")[0] == "DEAD"
            assert "Traceback" not in one.log()
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await redis.aclose()


async def test_worker_that_stops_hands_over_and_the_other_one_serves(site: Site) -> None:
    with worker_process(site, "one", "--stop-s", "6") as one, worker_process(site, "other") as other:
        await asyncio.to_thread(owns_all, site, one, other)
        shards = list(site.owned("one"))[:10]
        epochs = site.owned("one")
        clients = [await open_socket(one.port, "/", headers=stamp(shard, epochs[shard])) for shard in shards]
        began = time.monotonic()
        one.guardian.terminate()
        ends = await asyncio.gather(*map(closed, clients))
        assert set(ends) == {(1012, "shard moved")}
        assert time.monotonic() - began < 7
        assert await asyncio.to_thread(one.end) == 0
        after = site.owned("other")
        assert len(after) == SHARDS
        for shard in shards:
            assert after[shard] == epochs[shard] + 1
            assert (await knock(other.port, "/", headers=stamp(shard, after[shard]))).status == 101


async def test_worker_that_is_killed_is_fenced_by_its_guardian(site: Site) -> None:
    with worker_process(site, "one") as one, worker_process(site, "other") as other:
        await asyncio.to_thread(owns_all, site, one, other)
        began = time.monotonic()
        os.kill(one.child, signal.SIGKILL)
        assert await asyncio.to_thread(one.end) == 128 + signal.SIGKILL
        assert time.monotonic() - began < 2
        assert site.state("one")[0] == "DEAD"
        await asyncio.to_thread(owns_all, site, other)


async def test_second_worker_of_one_name_says_so_before_its_app_starts(site: Site) -> None:
    with worker_process(site, "one") as one:
        await asyncio.to_thread(owns_all, site, one)
        with worker_process(site, "one") as second:
            assert await asyncio.to_thread(second.end) == 1
            told = "herdgate: worker 'one' is alive in another process: give this one another name\n"
            assert second.log().endswith(told)
            assert "application startup" not in second.log()


async def test_restart_of_a_name_takes_what_it_had_without_waiting_for_a_silence(site: Site) -> None:
    with worker_process(site, "one") as one:
        await asyncio.to_thread(owns_all, site, one)
        os.kill(one.child, signal.SIGKILL)
        await asyncio.to_thread(one.end)
    with worker_process(site, "one"):
        poll(lambda: set(site.owned("one").values()) == {2}, "all of it is taken anew", within_s=40)


async def test_pause_beyond_the_lease_closes_sockets_and_says_nothing_to_them(site: Site) -> None:
    with worker_process(site, "one", "--lease-s", "2") as one, worker_process(site, "other", "--lease-s", "2") as other:
        await asyncio.to_thread(owns_all, site, one, other)
        epochs = site.owned("one")
        shard = next(iter(epochs))
        async with open_socket(one.port, "/", headers=stamp(shard, epochs[shard])) as client:
            child = one.child
            os.kill(child, signal.SIGSTOP)
            try:
                await client.send("hello")
                await asyncio.to_thread(owns_all, site, other)
            finally:
                os.kill(child, signal.SIGCONT)
            assert await closed(client) == (1012, "shard moved")
