"""`herdgate herd --cut drain` and `leaked_permits`, at real gateways."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.herdgate_gateway.gateways import EchoWorker, echo_worker
from tests.herdgate_gateway.serving import Serving, serving
from tests.herdgate_loadtest.herd.test_command import herd, only_lag
from tests.redis_servers import redis_server
from tests.wire import open_socket

RATE = 60


def control(gateway: Serving) -> str:
    return str(gateway.folder / "control")


def url(gateway: Serving) -> str:
    return f"ws://127.0.0.1:{gateway.port}/ws"


@contextmanager
def pair(worker: EchoWorker) -> Iterator[Sequence[Serving]]:
    """Two gateways of one fleet."""
    with redis_server() as redis:
        toml = f'rate = {RATE}\n[fleet]\nredis = "{redis.url}"'
        with serving(toml, worker.url) as one, serving(toml, worker.url) as two:
            yield one, two


@pytest.mark.xdist_group("timing")
async def test_clients_of_a_gateway_that_drains_are_moved_to_the_other_one() -> None:
    async with echo_worker() as worker:
        with pair(worker) as (one, two):
            code, (record,), err = await herd(
                *(url(one), url(two), "--failover", "--clients", "60", "--rate", str(RATE), "--ramp", "30"),
                *("--cut", "drain", "--gateway", control(one), "--gateway", control(two)),
            )
            assert only_lag(record), err
            assert code == (0 if record["valid"] else 1)
            assert (record["clients"], record["behaviours"]["obey"]["back"]) == (30, 30)
            assert (record["failed"], record["leaked_permits"]) == (0, 0)
            assert record["attempts_per_client"] <= 1.2, "each has a slot of its own at the other one"
            assert one.status()["drain"]["state"] == "drained"
            assert one.process.poll() is None, "it stays until it is ended"


async def test_permits_that_others_have_are_not_leaked_ones() -> None:
    async with echo_worker() as worker:
        with serving("rate = 1000", worker.url) as gateway:
            stranger = await open_socket(gateway.port, "/ws")
            code, (record,), err = await herd(url(gateway), "--clients", "10", "--gateway", control(gateway))
            assert only_lag(record), err
            assert code == (0 if record["valid"] else 1)
            assert record["leaked_permits"] == 0
            await stranger.close()


async def test_gateway_that_is_not_there_is_one_line_and_nothing_is_run() -> None:
    code, records, err = await herd("ws://127.0.0.1:9/", "--gateway", "/nowhere/control")
    assert (code, records) == (2, [])
    assert err == "--gateway: no answer from /nowhere/control ([Errno 2] No such file or directory); is it running?\n"
