"""SIGHUP with several processes: the parent reads, and all children have the same."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack

from websockets.asyncio.client import ClientConnection

from tests.herdgate_gateway.gateways import echo_worker
from tests.herdgate_gateway.processes.children import ask_control, pids, replaced, serving_children, status, stopped
from tests.herdgate_gateway.reloads import outcomes, reload, rewrite
from tests.herdgate_gateway.serving import Serving
from tests.wire import WAIT_S, eventually, knock, open_socket


async def echoes(client: ClientConnection) -> bool:
    await client.send("hello")
    return await asyncio.wait_for(client.recv(), WAIT_S) == "hello"


async def rate(gateway: Serving) -> float:
    told: float = (await status(gateway))["gates"]["default"]["rate"]
    return told


async def has_rate(gateway: Serving, wanted: float) -> None:
    async def is_so() -> bool:
        return await rate(gateway) == wanted

    await eventually(is_so, f"the rate is {wanted}")


async def in_each_child(gateway: Serving, path: str, code: int) -> None:
    for pid in await pids(gateway):
        with stopped(pid):
            assert (await knock(gateway.port, path)).status == code


async def test_new_settings_hold_in_every_child_and_no_socket_closes() -> None:
    routes = '[[routes]]\nname = "default"\npaths = ["/ws"]'
    async with echo_worker() as worker, serving_children(f"rate = 1000\n{routes}", worker.url) as gateway:
        clients = [await open_socket(gateway.port, "/ws") for _ in range(20)]
        load = asyncio.create_task(_knock_for_ever(gateway))
        lines = await reload(gateway, 'paths = ["/ws"]', 'paths = ["/ws", "/more"]', lines=3)
        load.cancel()
        assert sorted(line.partition(":")[2].strip() for line in lines) == [
            "child 1: settings reloaded, changed: routes[0].paths",
            "child 2: settings reloaded, changed: routes[0].paths",
            "settings reloaded, changed: routes[0].paths",
        ]
        await in_each_child(gateway, "/more", 101)
        assert all([await echoes(client) for client in clients])
        for client in clients:
            await client.close()


async def _knock_for_ever(gateway: Serving) -> None:
    while True:
        assert (await knock(gateway.port, "/ws")).status == 101


async def test_rate_of_the_file_holds_for_all_and_one_set_live_stays_while_the_file_has_the_same() -> None:
    async with echo_worker() as worker, serving_children("rate = 1000\nmax_held = 10", worker.url) as gateway:
        await reload(gateway, "rate = 1000", "rate = 500", lines=3)
        await has_rate(gateway, 500)
        assert (await ask_control(gateway, "/rate?rate=7", "POST")).status_code == 200
        await has_rate(gateway, 7)
        await reload(gateway, "max_held = 10", "max_held = 20", lines=3)
        killed = (await pids(gateway))[0]
        os.kill(killed, signal.SIGKILL)
        await replaced(gateway, killed)
        assert await rate(gateway) == 7
        await reload(gateway, "rate = 500", "rate = 0", lines=3)
        await has_rate(gateway, 0)
        await in_each_child(gateway, "/ws", 429)


async def test_admitted_share_of_the_file_holds_for_all() -> None:
    async with echo_worker() as worker, serving_children("rate = 1000\nadmit_fraction = 1", worker.url) as gateway:
        await reload(gateway, "admit_fraction = 1", "admit_fraction = 0", lines=3)

        async def is_shed() -> bool:
            told: float = (await status(gateway))["gates"]["default"]["admit_fraction"]
            return told == 0

        await eventually(is_shed, "the share is told")
        await in_each_child(gateway, "/ws", 503)


async def test_a_worker_that_goes_and_comes_back_costs_no_arrival_and_keeps_its_count() -> None:
    async with (
        echo_worker() as stays,
        echo_worker() as goes,
        AsyncExitStack() as stack,
        serving_children("rate = 10000", stays.url, goes.url) as gateway,
    ):
        inside = [await stack.enter_async_context(open_socket(gateway.port, "/")) for _ in range(20)]
        load = [asyncio.create_task(_knock_for_ever(gateway)) for _ in range(10)]
        listed = f'"{stays.url}", "{goes.url}"'
        for _ in range(10):
            await reload(gateway, listed, f'"{stays.url}"', lines=3)
            await _has_worker(gateway, goes.url, "removed")
            await reload(gateway, f'"{stays.url}"', listed, lines=3)
            await _has_worker(gateway, goes.url, "up")
        for task in load:
            assert not task.done(), "every one of them came in"
            task.cancel()
        assert all([await echoes(client) for client in inside])


async def _has_worker(gateway: Serving, url: str, state: str) -> None:
    """Wait until it is told of with that state and with its share of the 20 sockets."""

    async def is_told() -> bool:
        workers = (await status(gateway))["workers"]
        return [worker["open"] >= 10 for worker in workers if (worker["url"], worker["state"]) == (url, state)] == [
            True
        ]

    await eventually(is_told, f"{url} is {state}")


async def test_fault_changes_nothing_and_a_child_that_comes_back_has_the_settings_in_force() -> None:
    async with echo_worker() as worker, serving_children("rate = 1000", worker.url) as gateway:
        (line,) = await reload(gateway, "rate = 1000", "rate = -1")
        assert "settings not reloaded, all stays as it was: rate: got -1" in line
        killed = (await pids(gateway))[1]
        os.kill(killed, signal.SIGKILL)
        await replaced(gateway, killed)
        await in_each_child(gateway, "/ws", 101)
        assert await rate(gateway) == 1000


async def test_number_of_processes_takes_a_restart() -> None:
    async with echo_worker() as worker, serving_children("rate = 1000", worker.url) as gateway:
        rewrite(gateway, "rate = 1000", "rate = 900")
        lines = await reload(gateway, "processes = 2", "processes = 3", lines=4)
        assert any("these settings take a restart, and stay as they were: processes" in line for line in lines)
        assert len(await pids(gateway)) == 2
        assert len(outcomes(gateway)) == 4
