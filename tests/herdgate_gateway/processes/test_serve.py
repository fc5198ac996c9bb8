"""Several processes behind one listener, as users start them: one rate, one order, one place to look."""

import asyncio
import os
import signal
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus

from tests.herdgate_gateway.gateways import echo_worker
from tests.herdgate_gateway.processes.children import (
    ask_control,
    counted,
    gone,
    member_of,
    pids,
    replaced,
    serving_children,
    status,
    stopped,
)
from tests.herdgate_gateway.serving import Serving, herdgate
from tests.redis_servers import redis_server
from tests.wire import WAIT_S, eventually, knock, open_socket

CROWD_S = 3.0


async def crowd(gateway: Serving, seconds: float, *, at_once: int = 20) -> tuple[int, float]:
    """Newcomers without end: how many came in, and in how many seconds."""
    began, came = time.monotonic(), 0
    while time.monotonic() < began + seconds:
        answers = await asyncio.gather(*(_status(gateway) for _ in range(at_once)))
        came += answers.count(101)
    return came, time.monotonic() - began


async def _status(gateway: Serving) -> int | None:
    try:
        return (await knock(gateway.port, "/ws")).status
    except (OSError, InvalidMessage, ConnectionClosed):
        return None  # its child was killed


async def echoes(client: ClientConnection) -> bool:
    """True if it answers; False if it has ended."""
    try:
        await client.send("hello")
        return await asyncio.wait_for(client.recv(), WAIT_S) == "hello"
    except ConnectionClosed:
        return False


async def test_all_children_have_one_rate() -> None:
    async with echo_worker() as worker, serving_children("rate = 40", worker.url) as gateway:
        came, took_s = await crowd(gateway, CROWD_S)
        assert came <= 40 + 40 * took_s + 1
        assert came >= 0.9 * (40 + 40 * took_s), "and all of it is used"
        assert len({member_of(scope) for scope in worker.seen}) == 2
        assert "Traceback" not in gateway.log()


async def test_no_child_is_starved_of_connections() -> None:
    async with echo_worker() as worker, serving_children("rate = 10000", worker.url) as gateway:
        for _ in range(15):
            assert set(await asyncio.gather(*(_status(gateway) for _ in range(20)))) == {101}
        shares = Counter(member_of(scope) for scope in worker.seen)
        assert len(shares) == 2
        assert min(shares.values()) >= 30, shares


async def test_ticket_of_one_child_is_kept_at_the_other_once() -> None:
    async with echo_worker() as worker, serving_children("rate = 2\nburst = 1", worker.url) as gateway:
        one, two = await pids(gateway)
        with stopped(two):
            assert (await knock(gateway.port, "/ws")).status == 101
            hint = await knock(gateway.port, "/ws")
            ticket = [("Herdgate-Ticket", hint.headers["herdgate-ticket"])]
        await asyncio.sleep(int(hint.headers["herdgate-retry-ms"]) / 1000 + 0.01)
        with stopped(one):
            assert (await knock(gateway.port, "/ws", headers=ticket)).status == 101
        with stopped(two):
            assert (await knock(gateway.port, "/ws", headers=ticket)).status == 429
        assert len({member_of(scope) for scope in worker.seen}) == 2


async def test_child_that_is_killed_takes_its_own_sockets_along_and_comes_back() -> None:
    async with echo_worker() as worker, serving_children("rate = 1000", worker.url) as gateway:
        clients = [await open_socket(gateway.port, f"/{number}") for number in range(30)]
        members = {scope["path"]: member_of(scope) for scope in worker.seen}
        await counted(gateway, 30)
        killed = (await pids(gateway))[0]
        os.kill(killed, signal.SIGKILL)
        live = {f"/{number}": await echoes(client) for number, client in enumerate(clients)}
        assert len({members[path] for path, is_live in live.items() if not is_live}) == 1
        assert len({members[path] for path, is_live in live.items() if is_live}) == 1
        await replaced(gateway, killed)
        gate = (await status(gateway))["gates"]["default"]
        assert gate["open"] == sum(live.values()), "permits are those of the sockets that are left"
        assert gate["admitted"] == 30, "what was counted stays counted"
        assert [child["restarts"] for child in (await status(gateway))["children"]] == [1, 0]
        assert f"child 1 (pid {killed}) was ended by SIGKILL, starting it again in 0.1 s" in gateway.log()
        for client in clients:
            await client.close()


async def test_rate_holds_while_children_are_killed() -> None:
    async with echo_worker() as worker, serving_children("rate = 30\nburst = 5", worker.url) as gateway:
        killing = asyncio.create_task(_kill_each(gateway))
        _, took_s = await crowd(gateway, CROWD_S)
        await killing
        assert len(worker.seen) <= 5 + 30 * took_s + 1
        assert len(worker.seen) >= 30


async def _kill_each(gateway: Serving) -> None:
    for pid in await pids(gateway):
        await asyncio.sleep(0.7)
        os.kill(pid, signal.SIGKILL)


async def test_sigterm_closes_every_socket_with_a_code_and_ends_all() -> None:
    async with echo_worker() as worker, serving_children("rate = 1000", worker.url) as gateway:
        children = await pids(gateway)
        clients = [await open_socket(gateway.port, "/ws") for _ in range(20)]
        began = time.monotonic()
        code = await asyncio.to_thread(gateway.end, signal.SIGTERM)
        assert (code, time.monotonic() - began < 10) == (0, True)
        for client in clients:
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(client.recv(), WAIT_S)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1012
        for pid in children:
            await gone(pid)
        assert "Traceback" not in gateway.log()


async def test_children_end_with_a_parent_that_is_killed_and_leave_nothing_of_it_behind() -> None:
    async with echo_worker() as worker, serving_children("rate = 1000", worker.url) as gateway:
        children = await pids(gateway)
        sockets = {Path(str(found.laddr)) for found in psutil.Process(gateway.process.pid).net_connections("unix")}
        (calendar,) = [path for path in sockets if path.name == "calendar"]
        assert calendar.exists()
        async with open_socket(gateway.port, "/ws") as client:
            gateway.process.kill()
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(client.recv(), WAIT_S)
        for pid in children:
            await gone(pid)
        assert "the parent has ended, and so does this child" in gateway.log()
        assert "Traceback" not in gateway.log()
        assert not calendar.parent.exists()


async def test_one_listener_tells_of_all_children() -> None:
    async with echo_worker() as worker, serving_children("rate = 5\nburst = 3", worker.url) as gateway:
        refused = [(await knock(gateway.port, "/ws")).status for _ in range(8)].count(429)
        await counted(gateway, 8 - refused, refused)
        told = await status(gateway)
        gate = told["gates"]["default"]
        assert (gate["rate"], gate["burst"], gate["denied"], gate["fleet"]) == (5, 3, {"rate": refused}, None)
        assert [worker["url"] for worker in told["workers"]] == [worker.url]
        families = text_string_to_metric_families((await ask_control(gateway, "/metrics")).text)
        samples = {(s.name, *sorted(s.labels.values())): s.value for family in families for s in family.samples}
        assert samples["herdgate_admitted_total", "default"] == 8 - refused
        assert samples["herdgate_denied_total", "default", "rate"] == refused
        assert samples["herdgate_rate", "default"] == 5
        assert (samples["herdgate_child_up", "1"], samples["herdgate_child_up", "2"]) == (1, 1)
        assert samples["herdgate_child_restarts_total", "1"] == 0


async def test_readiness_says_which_child_is_not_there() -> None:
    async with echo_worker() as worker, serving_children("rate = 10", worker.url) as gateway:
        assert (await ask_control(gateway, "/readyz")).text == "ready\n"
        one, two = await pids(gateway)
        with stopped(one):
            await _reads(gateway, 200, "ready, but child 1 is blocked\n")
            with stopped(two):
                await _reads(gateway, 503, "no child is ready: child 1 is blocked, child 2 is blocked\n")
                assert (await ask_control(gateway, "/healthz")).status_code == 200
        await _reads(gateway, 200, "ready\n")


async def _reads(gateway: Serving, code: int, text: str) -> None:
    async def is_told() -> bool:
        answer = await ask_control(gateway, "/readyz")
        return (answer.status_code, answer.text) == (code, text)

    await eventually(is_told, f"/readyz is {code} {text!r}", within_s=WAIT_S)


async def test_rate_and_fraction_are_set_for_all_children() -> None:
    async with echo_worker() as worker, serving_children("rate = 0", worker.url) as gateway:
        assert (await knock(gateway.port, "/ws")).status == 429
        assert (await ask_control(gateway, "/rate?rate=1000", "POST")).status_code == 200
        await _admit_all(gateway, 101)
        assert (await ask_control(gateway, "/fraction?fraction=0", "POST")).status_code == 200
        await _admit_all(gateway, 503)
        refused = await ask_control(gateway, "/rate?rate=none", "POST")
        assert refused.status_code == 400
        assert refused.text.startswith("rate: got none; write a number of admissions per second")


async def _admit_all(gateway: Serving, code: int) -> None:
    """Each child answers with this status."""

    async def is_so() -> bool:
        return await _status(gateway) == code

    for pid in await pids(gateway):
        with stopped(pid):
            await eventually(is_so, f"the other answers {code}", within_s=WAIT_S)


async def test_caps_are_divided_so_that_all_children_stay_within_them() -> None:
    async with echo_worker() as worker, serving_children("rate = 1000\nmax_open = 5", worker.url) as gateway:
        clients, refused = [], 0
        for pid in await pids(gateway):
            with stopped(pid):
                for _ in range(4):
                    answer = await _open_or_refused(gateway)
                    refused += answer is None
                    clients += [answer] if answer else []
        assert (len(clients), refused) == (4, 4), "half of 5, rounded down, each"
        for client in clients:
            await client.close()


async def _open_or_refused(gateway: Serving) -> ClientConnection | None:
    try:
        return await open_socket(gateway.port, "/ws")
    except InvalidStatus:
        return None


def test_caps_too_small_to_be_divided_are_one_line() -> None:
    finished = herdgate(
        "serve", "--rate", "5", "--worker", "ws://127.0.0.1:1", "--processes", "4", HERDGATE_MAX_OPEN="3"
    )

    assert finished.returncode == 2
    assert finished.stderr.strip() == (
        'herdgate: max_open: got 3; write 4 or more for 4 processes, 0 for nobody, or "none" for no limit'
        " (env HERDGATE_MAX_OPEN)"
    )


async def test_children_of_a_fleet_share_its_calendar_and_the_parent_holds_none() -> None:
    with redis_server() as redis:
        toml = f'rate = 40\nburst = 10\n[fleet]\nredis = "{redis.url}"'
        async with echo_worker() as worker, serving_children(toml, worker.url) as gateway:
            came, took_s = await crowd(gateway, 2)
            assert 20 * took_s <= came <= 10 + 40 * took_s + 1
            fleet = (await status(gateway))["gates"]["default"]["fleet"]
            assert (fleet["is_up"], fleet["gateways"]) == (True, 2)
            assert (await ask_control(gateway, "/rate?rate=7", "POST")).status_code == 200

            async def is_set() -> bool:
                rate: float = (await status(gateway))["gates"]["default"]["rate"]
                return rate == 7

            await eventually(is_set, "the fleet has the rate")


async def test_start_is_said_once_with_the_fleet() -> None:
    with redis_server() as redis:
        toml = f'rate = 40\n[fleet]\nredis = "{redis.url}"\nname = "chat"'
        async with echo_worker() as worker, serving_children(toml, worker.url) as gateway:
            (line,) = [line for line in gateway.log().splitlines() if "serving on" in line]
    assert "; fleet chat at 127.0.0.1:" in line
    assert line.endswith(f"; admin on {gateway.folder}/control")
