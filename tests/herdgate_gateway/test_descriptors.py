"""Who comes when descriptors, or ports to dial from, have run out is told when to come back."""

import asyncio
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager

import psutil
import pytest

from tests.herdgate_gateway.few_ports import PORTS, WORKER
from tests.herdgate_gateway.gateways import echo_worker, until
from tests.herdgate_gateway.outside import beside
from tests.herdgate_gateway.serving import Serving, serving
from tests.needs import unmet
from tests.wire import knock, open_socket

LIMITED = ("sh", "-c", 'ulimit -n 100 && exec "$0" "$@"')
ROOM = 10  # 80 descriptors are kept back, and each socket takes two


async def test_no_more_sockets_are_let_in_than_there_are_descriptors_for() -> None:
    async with echo_worker() as worker:
        with serving("rate = 100000", worker.url, by=LIMITED) as gateway:
            assert f"room for {ROOM} sockets" in gateway.log()
            async with AsyncExitStack() as stack:
                for _ in range(ROOM):
                    await stack.enter_async_context(open_socket(gateway.port, "/ws"))
                refused = await knock(gateway.port, "/ws")
                assert (refused.status, refused.json()["reason"]) == (503, "full")
                assert refused.json()["retry_ms"] >= 1_000
            await until(lambda: not gateway.status()["gates"]["default"]["open"], "all have gone")
            assert (await knock(gateway.port, "/ws")).status == 101


def connections(gateway: Serving) -> list[object]:
    """Those it has with clients and workers."""
    found = psutil.Process(gateway.process.pid).net_connections("tcp")
    return [each for each in found if each.status != psutil.CONN_LISTEN]


@contextmanager
def one_descriptor(gateway: Serving) -> Iterator[None]:
    """Leave it room for one more: that of a client."""
    pid = gateway.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    taken = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}  # noqa: PTH208
    second = sorted(set(range(len(taken) + 2)) - taken)[1]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (second, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("mode", ["splice", "messages"])
@pytest.mark.parametrize("listener", ["own", "asyncio"])
async def test_a_dial_without_a_descriptor_is_answered_full_and_no_worker_is_blamed(listener: str, mode: str) -> None:
    toml = f"listener = '{listener}'\nrate = 100000\n[relay]\nmode = '{mode}'"
    async with echo_worker() as worker, beside(toml, worker.url) as gateway:
        assert (await knock(gateway.port, "/ws")).status == 101
        for _ in range(3):
            await until(lambda: not connections(gateway), "nobody is there")
            with one_descriptor(gateway):
                refused = await knock(gateway.port, "/ws")
            assert (refused.status, refused.json()["reason"]) == (503, "full")
            assert refused.json()["retry_ms"] >= 1_000
        assert (await knock(gateway.port, "/ws")).status == 101
        assert gateway.log().count("out of file descriptors") == 1
        status = await asyncio.to_thread(gateway.status)
        assert status["workers"][0]["failures"] == 0


@pytest.mark.parametrize("mode", ["splice", "messages"])
async def test_case_8_1_without_a_port_to_dial_from_it_is_full_and_no_worker_is_blamed(mode: str) -> None:
    if os.geteuid() != 0:
        unmet("root")
    by = (sys.executable, "-m", "tests.herdgate_gateway.few_ports")
    with serving(f"rate = 100000\n[relay]\nmode = '{mode}'", WORKER, by=by) as gateway:
        async with AsyncExitStack() as stack:
            for _ in range(PORTS):
                await stack.enter_async_context(open_socket(gateway.port, "/ws"))
            for _ in range(2):
                refused = await knock(gateway.port, "/ws")
                assert (refused.status, refused.json()["reason"]) == (503, "full")
                assert refused.json()["retry_ms"] >= 1_000
            assert gateway.log().count("out of ports") == 1
            assert gateway.status()["workers"][0]["failures"] == 0
