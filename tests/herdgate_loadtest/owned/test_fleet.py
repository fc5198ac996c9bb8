"""A fleet with leases: real gateways, workers, Redis and table; each part of it is killed and comes back."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest
from websockets.asyncio.client import connect

from herdgate_loadtest.errors import CrowdError
from herdgate_loadtest.owned.fleet import OwnedFleet
from herdgate_loadtest.owned.gateway import PROBE
from herdgate_loadtest.servers.children import HOST, child_of
from herdgate_loadtest.servers.lease_table import SHARDS, shard_of
from tests.herdgate_loadtest.owned.fleets import check_needs, small_fleet
from tests.servers import poll

pytestmark = pytest.mark.xdist_group("owned-fleet")

TELL_AND_WAIT = """
import time
from herdgate_loadtest.owned.fleet import owned_fleet
with owned_fleet(rate=10.0, workers=1, gateways=1):
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def fleet() -> Iterator[OwnedFleet]:
    with small_fleet(gateways=2) as fleet:
        yield fleet


def owner_of(fleet: OwnedFleet, connection_id: str) -> str:
    (owner,) = (name for name, shards in fleet.owners().items() if shard_of(connection_id) in shards)
    return owner


async def visit(fleet: OwnedFleet, gateway: int, connection_id: str, source: str | None = None) -> None:
    url = f"ws://{HOST}:{fleet.gateways[gateway].port}/?id={connection_id}"
    local = None if source is None else (source, 0)
    async with connect(url, local_addr=local) as client:
        await client.send("hello")
        assert await client.recv() == "hello"


def is_back(fleet: OwnedFleet, *names: str) -> None:
    """Those workers, and no others, own everything; every gateway that is up is ready."""
    poll(lambda: set(fleet.owners()) == set(names) and fleet.is_whole(), f"{names} own all", within_s=60)


async def test_each_gateway_takes_a_client_to_the_owner_of_its_connection(fleet: OwnedFleet) -> None:
    began = time.monotonic()
    for gateway in (0, 1):
        await visit(fleet, gateway, "room-7")
    seen = {name: await worker.seen(began) for name, worker in fleet.workers.items()}

    (epochs,) = ([came.epoch for came in each] for each in seen.values() if each)
    assert len(epochs) == 2
    assert [came.shard for came in seen[owner_of(fleet, "room-7")]] == [shard_of("room-7")] * 2
    assert await fleet.workers["worker-1"].seen(time.monotonic()) == []


async def test_probes_are_not_counted_by_the_calendar(fleet: OwnedFleet) -> None:
    before = (await fleet.gateways[0].running.counts()).admitted
    await visit(fleet, 0, "room-7", PROBE)
    await visit(fleet, 0, "room-7")

    assert (await fleet.gateways[0].running.counts()).admitted == before + 1


def test_worker_that_is_killed_loses_its_shards_and_comes_back(fleet: OwnedFleet) -> None:
    worker = fleet.workers["worker-2"]
    worker.crash()
    is_back(fleet, "worker-1")
    poll(worker.is_over, "its guardian has ended", within_s=30)
    fleet.check()

    worker.start()
    fleet.wait_until_settled()
    assert min(map(len, fleet.owners().values())) >= 0.75 * SHARDS / 2


def test_worker_that_is_stopped_gives_everything_away(fleet: OwnedFleet) -> None:
    worker = fleet.workers["worker-2"]
    worker.stop()
    poll(worker.is_over, "it has stopped", within_s=60)
    assert set(fleet.owners()) == {"worker-1"}
    assert fleet.is_whole()

    worker.start()
    is_back(fleet, "worker-1", "worker-2")


async def test_gateway_that_is_killed_comes_back_at_its_place(fleet: OwnedFleet) -> None:
    gateway = fleet.gateways[1]
    gateway.kill()
    with pytest.raises(OSError, match="Connect call failed"):
        await visit(fleet, 1, "room-7")
    assert not gateway.is_up
    assert fleet.is_whole()

    gateway.start()
    poll(gateway.is_ready, "it is ready", within_s=60)
    await visit(fleet, 1, "room-7")


def test_member_that_ends_by_itself_is_named() -> None:
    with small_fleet() as fleet:
        guardian = fleet.workers["worker-1"]._running().pid
        child = child_of(guardian)
        assert child is not None
        os.kill(guardian, signal.SIGKILL)
        poll(lambda: has_ended(fleet), "it is seen", within_s=10)
        with pytest.raises(CrowdError, match=r"^worker-1 has ended by signal 9"):
            fleet.check()
        os.kill(child, signal.SIGKILL)


def has_ended(fleet: OwnedFleet) -> bool:
    try:
        fleet.check()
    except CrowdError:
        return True
    return False


def test_all_of_it_ends_with_whoever_started_it_however_that_ends() -> None:
    check_needs()
    with subprocess.Popen(
        [sys.executable, "-c", TELL_AND_WAIT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as us:
        try:
            assert us.stdout is not None
            assert us.stdout.readline() == b"up\n"
            members = psutil.Process(us.pid).children(recursive=True)
            assert len(members) >= 5  # Redis, table, gateway, guardian, worker
        finally:
            us.kill()
    _, left = psutil.wait_procs(members, timeout=60)
    assert left == []
