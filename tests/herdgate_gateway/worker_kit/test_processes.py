"""`herdgate worker`: real processes with guardians, a real table, a real Redis."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from herdgate_gateway.leases.acts import register
from herdgate_gateway.leases.dynamo import Place
from herdgate_gateway.leases.rows import SHARDS, WorkerRow
from tests.dynamodb import DynamoServer, dynamodb
from tests.herdgate_gateway.leases.conftest import place
from tests.herdgate_gateway.leases.test_command import within
from tests.herdgate_gateway.worker_kit.serving_worker import closed, id_in, stamp, until
from tests.herdgate_gateway.worker_kit.worker_processes import APP, Site, WorkerProcess, worker_process
from tests.redis_servers import redis_server
from tests.servers import ROOT, poll
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


async def test_case_4_3_worker_that_stops_hands_over_and_the_other_one_serves(site: Site) -> None:
    with worker_process(site, "one", "--stop-s", "6") as one, worker_process(site, "other") as other:
        await asyncio.to_thread(owns_all, site, one, other)
        shards = list(site.owned("one"))[:10]
        epochs = site.owned("one")
        clients = [await open_socket(one.port, "/", headers=stamp(shard, epochs[shard])) for shard in shards]
        one.guardian.terminate()
        ends = await asyncio.gather(*map(closed, clients))
        assert set(ends) == {(1012, "shard moved")}
        assert await asyncio.to_thread(one.end) == 0
        await asyncio.to_thread(owns_all, site, other)  # what it had no time to give is taken
        after = site.owned("other")
        for shard in shards:
            assert after[shard] == epochs[shard] + 1
            assert (await knock(other.port, "/", headers=stamp(shard, after[shard]))).status == 101


async def test_worker_that_is_killed_is_fenced_by_its_guardian(site: Site) -> None:
    with worker_process(site, "one") as one, worker_process(site, "other") as other:
        await asyncio.to_thread(owns_all, site, one, other)
        os.kill(one.child, signal.SIGKILL)
        assert await asyncio.to_thread(one.end) == 128 + signal.SIGKILL
        assert one.log().splitlines()[-1] == "worker one was killed by SIGKILL; declared dead"
        assert site.state("one")[0] == "DEAD"
        await asyncio.to_thread(owns_all, site, other)


async def test_second_worker_of_one_name_says_so_before_its_app_starts(site: Site) -> None:
    with worker_process(site, "one") as one:
        await asyncio.to_thread(owns_all, site, one)
        with worker_process(site, "one") as second:
            assert await asyncio.to_thread(second.end) == 2
            told = "herdgate: worker 'one' is alive in another process: give this one another name\n"
            assert second.log() == told


async def test_worker_whose_guardian_is_killed_serves_on_and_ends_well_by_its_own_sigterm(site: Site) -> None:
    with worker_process(site, "one") as one:
        await asyncio.to_thread(owns_all, site, one)
        child, port, epochs = one.child, one.port, site.owned("one")
        one.guardian.kill()
        await asyncio.to_thread(one.end)
        try:
            assert (await knock(port, "/", headers=stamp(3, epochs[3]))).status == 101
            os.kill(child, signal.SIGTERM)
            await until(lambda: site.state("one")[0] == "DEAD", "it has ended well", within_s=20)
        finally:
            os.kill(child, signal.SIGKILL)


def catches_sigterm(pid: int) -> bool:
    caught = re.search(r"^SigCgt:\s*(\S+)$", Path(f"/proc/{pid}/status").read_text("ascii"), re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (signal.SIGTERM - 1) & 1)


def test_stop_of_a_worker_that_waits_for_its_name_ends_it_without_a_word(site: Site) -> None:
    silent = WorkerRow("one", "i1", None, "UP", 0, 60_000, "", 1, 0)
    within(site.place, lambda table: table.write(register("default", silent, None)))
    where = ["--table", site.place.table, "--endpoint-url", str(site.place.endpoint_url), "--lease-s", "60"]
    command = [sys.executable, "-m", "herdgate", "worker", APP, "--name", "one", "--listen", "127.0.0.1:0", *where]
    log_file = site.folder / "log"
    with log_file.open("wb") as log, subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log) as guardian:
        waiting = WorkerProcess("one", guardian, log_file)
        try:
            poll(lambda: has_child(guardian.pid) and catches_sigterm(waiting.child), "it waits", within_s=40)
            guardian.terminate()
            assert waiting.end() == 0
        finally:
            guardian.kill()
    assert log_file.read_text() == ""
    assert site.state("one")[0] == "UP"


def has_child(pid: int) -> bool:
    return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii"))


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
