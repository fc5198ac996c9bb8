"""Clients that do not do their part in a drain, and people and machines that change things while it goes on."""

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from herdgate.core.answers import Invitation
from herdgate_gateway.drain.moving import HINTING_S, LATEST_S, LOT, Mover
from herdgate_gateway.drain.plan import Schedule
from herdgate_gateway.drain.sockets import OpenSockets
from tests.herdgate_gateway.drain.draining import ask, ends, newcomers, over, steps
from tests.herdgate_gateway.drain.test_call import drained
from tests.herdgate_gateway.drain.test_sigterm import MODES, settings
from tests.herdgate_gateway.gateways import Visitor, echo_worker, frame, scripted_worker
from tests.herdgate_gateway.processes.children import pids, serving_children
from tests.herdgate_gateway.serving import HERDGATE, Serving, serving
from tests.wire import Raw, eventually, handshake, knock, raw


async def _flood(visitor: Visitor) -> None:
    await visitor.accept()
    with suppress(OSError):
        while True:
            visitor.writer.write(frame(2, b"x" * 60_000))
            await visitor.writer.drain()


@asynccontextmanager
async def _entered(gateway: Serving, count: int) -> AsyncIterator[list[Raw]]:
    """So many raw clients that are in, and read no further."""
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(raw(gateway.port, handshake("/ws"))) for _ in range(count)]
        for client in clients:
            assert (await client.head())[0] == 101
        yield clients


@MODES
async def test_clients_that_read_nothing_are_cut_at_the_deadline_and_said(mode: str) -> None:
    async with scripted_worker(_flood) as worker:
        with serving(settings(mode, 100, 100, sigterm_s=3), worker.url) as gateway:
            async with _entered(gateway, 3):
                began = time.monotonic()
                gateway.process.send_signal(signal.SIGTERM)
                assert await over(gateway) == 0
                assert time.monotonic() - began < 12
                assert "3 that did not answer were cut" in [what for *_, what in steps(gateway)]
                assert steps(gateway)[-1][1:] == (0, "drained")
                assert "Traceback" not in gateway.log()


@MODES
async def test_client_that_talks_on_instead_of_answering_its_close_frame_is_cut_at_the_deadline_of_a_call(
    mode: str,
) -> None:
    async with echo_worker() as worker:
        with serving(settings(mode, 100, 100, sigterm_s=3), worker.url) as gateway:
            async with _entered(gateway, 1) as (client,):
                assert (await ask(gateway, "/drain", "POST", deadline="3")).status_code == 200
                began = time.monotonic()
                with suppress(OSError):
                    while time.monotonic() - began < 12 and not await drained(gateway):
                        await client.send(frame(1, b"still here", mask=True))
                        await asyncio.sleep(0.02)
                await eventually(lambda: drained(gateway), "it is drained")
                assert time.monotonic() - began < 5, "the relay's own patience is longer"
                assert (await ask(gateway, "/status.json")).json()["drain"]["open"] == 0


@MODES
async def test_worker_that_answers_late_has_its_client_moved_like_the_others(mode: str) -> None:
    let_in = asyncio.Event()

    async def slow(visitor: Visitor) -> None:
        await let_in.wait()
        await visitor.accept()
        await visitor.reader.read()

    async with scripted_worker(slow) as worker:
        with serving(settings(mode, 10, 10, sigterm_s=4), worker.url) as gateway:
            async with raw(gateway.port, handshake("/ws")) as client:
                await eventually(lambda: _is_dialled(len(worker.visits)), "the worker is dialled")
                gateway.process.send_signal(signal.SIGTERM)
                await eventually(lambda: _says(gateway, "arrivals are refused"), "it drains")
                let_in.set()
                assert (await client.head())[0] == 101
                opcode, payload = await client.frame()
                assert (opcode, payload[:2]) == (8, (1012).to_bytes(2))
                assert json.loads(payload[2:])["retry_ms"] < 1_000, "at a firm slot"
                assert await over(gateway) == 0


async def _is_dialled(visits: int) -> bool:
    return visits > 0


async def _says(gateway: Serving, what: str) -> bool:
    return what in gateway.log()


async def test_half_a_handshake_does_not_keep_a_gateway() -> None:
    async with echo_worker() as worker:
        with serving(settings("splice", 100, 100, sigterm_s=20), worker.url) as gateway:
            async with raw(gateway.port, handshake("/ws")[:40]), raw(gateway.port), raw(gateway.port, b"GET / HT"):
                began = time.monotonic()
                gateway.process.send_signal(signal.SIGTERM)
                assert await over(gateway) == 0
                assert time.monotonic() - began < 12


async def test_asking_before_coming_is_answered_as_an_arrival() -> None:
    async with echo_worker() as worker:
        with serving(settings("splice", 2, 50, sigterm_s=1), worker.url) as gateway:
            await newcomers(gateway, 4)
            await ask(gateway, "/drain", "POST")
            await eventually(lambda: _says(gateway, "arrivals are refused"), "it drains")
            async with raw(gateway.port, b"GET /_herdgate/admission?path=/ws HTTP/1.1\r\nHost: a\r\n\r\n") as client:
                status, headers = await client.head()
                told = json.loads(await client.read(int(headers["content-length"])))
            assert (status, told["reason"]) == (503, "draining")
            assert told["ticket"]


async def test_rate_of_0_stops_a_drain_and_another_one_lets_it_go_on() -> None:
    async with echo_worker() as worker:
        with serving(settings("splice", 4, 50, sigterm_s=1), worker.url) as gateway:
            clients = await newcomers(gateway, 8)
            ending = asyncio.ensure_future(ends(clients))
            await ask(gateway, "/drain", "POST")
            await eventually(lambda: _has_open(gateway, 7), "one is moved")
            await ask(gateway, "/rate", "POST", rate="0")
            await eventually(lambda: _is_still(gateway), "nobody is moved any more")
            await ask(gateway, "/rate", "POST", rate="40")
            assert all(end.told["retry_ms"] < 500 and end.told["ticket"] for end in await ending)


async def _open(gateway: Serving) -> int:
    count: int = (await ask(gateway, "/status.json")).json()["drain"]["open"]
    return count


async def _has_open(gateway: Serving, most: int) -> bool:
    return await _open(gateway) <= most


async def _is_still(gateway: Serving) -> bool:
    """Nobody leaves for three times as long as one takes at the former pace."""
    before = await _open(gateway)
    await asyncio.sleep(1.5)
    return 0 < before == await _open(gateway)


async def test_reload_on_the_way_takes_the_rate_and_goes_on_refusing() -> None:
    async with echo_worker() as worker:
        with serving(settings("splice", 1, 50, call_s=60), worker.url) as gateway:
            clients = await newcomers(gateway, 10)
            ending = asyncio.ensure_future(ends(clients))
            await ask(gateway, "/drain", "POST")
            await eventually(lambda: _says(gateway, "20.0 s at 0.5/s"), "it drains slowly")
            file = gateway.folder / "herdgate.toml"
            file.write_text(file.read_text().replace("rate = 1\n", "rate = 40\n"))
            began = time.monotonic()
            gateway.process.send_signal(signal.SIGHUP)
            await ending
            assert time.monotonic() - began < 12
            assert (await knock(gateway.port, "/ws")).json()["reason"] == "draining"


async def test_who_came_past_the_limits_after_a_drain_hears_when_to_come_back() -> None:
    async with echo_worker() as worker:
        toml = "enforce = false\n" + settings("splice", 100, 100, sigterm_s=10)
        with serving(toml, worker.url) as gateway:
            await ask(gateway, "/drain", "POST")
            await eventually(lambda: drained(gateway), "it is drained")
            clients = await newcomers(gateway, 3)
            ending = asyncio.ensure_future(ends(clients))
            began = time.monotonic()
            gateway.process.send_signal(signal.SIGTERM)
            ended = await ending
            assert await over(gateway) == 0
            assert time.monotonic() - began < 8
            assert {end.code for end in ended} == {1012}
            assert all(end.told["retry_ms"] >= 1_000 for end in ended)


async def test_of_several_that_wait_for_the_end_one_may_be_killed() -> None:
    async with echo_worker() as worker:
        with serving(settings("splice", 10, 50, sigterm_s=1), worker.url) as gateway:
            clients = await newcomers(gateway, 8)
            ending = asyncio.ensure_future(ends(clients))
            waiting = [_waiting(gateway) for _ in range(2)]
            await eventually(lambda: _says(gateway, "moving"), "it drains", within_s=10)
            waiting[0].kill()
            told = [await asyncio.to_thread(each.communicate, None, 20) for each in waiting]
            await ending
            assert [each.returncode for each in waiting] == [-signal.SIGKILL, 0]
            assert told[1] == ("drained\n", "")


async def test_who_waits_for_the_end_of_a_gateway_that_is_killed_is_not_told_that_it_is_drained() -> None:
    async with echo_worker() as worker:
        with serving(settings("splice", 1, 50, call_s=60), worker.url) as gateway:
            await newcomers(gateway, 8)
            waiting = _waiting(gateway)
            await eventually(lambda: _says(gateway, "moving"), "it drains", within_s=10)
            gateway.process.kill()
            assert await asyncio.to_thread(waiting.communicate, None, 20) == ("ended\n", "")
            assert waiting.returncode == 0, "a hook has nothing left to do"


def _waiting(gateway: Serving) -> "subprocess.Popen[str]":
    command = [*HERDGATE, "drain", "--wait", "--socket", str(gateway.folder / "control")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


async def test_who_waits_while_another_gateway_takes_the_address_does_not_wait_for_ever() -> None:
    async with echo_worker() as worker:
        with serving(settings("splice", 1, 50, call_s=60), worker.url) as gateway:
            await newcomers(gateway, 8)
            waiting = _waiting(gateway)
            await eventually(lambda: _says(gateway, "moving"), "it drains", within_s=10)
            control = gateway.folder / "control"
            with serving("rate = 1", worker.url) as other:
                gateway.process.kill()
                (other.folder / "control").replace(control)
                told = await asyncio.to_thread(waiting.communicate, None, 20)
                control.replace(other.folder / "control")
            assert told == ("ended, and another gateway is there by now\n", "")


async def test_file_that_cannot_be_looked_for_is_said_once_and_drains_nobody(tmp_path: Path) -> None:
    async with echo_worker() as worker:
        toml = settings("splice", 100, 100, sigterm_s=1, file=str(tmp_path / ("x" * 300)))
        with serving(toml, worker.url) as gateway:
            await eventually(lambda: _says(gateway, "cannot look for the file"), "it says so")
            await asyncio.sleep(1.2)  # two more looks
            assert gateway.log().count("cannot look for the file") == 1
            assert (await knock(gateway.port, "/ws")).status == 101


async def test_file_that_is_there_at_the_start_and_then_goes_leaves_it_drained(tmp_path: Path) -> None:
    file = tmp_path / "drain"
    file.touch()
    async with echo_worker() as worker:
        with serving(settings("splice", 100, 100, sigterm_s=1, file=str(file)), worker.url) as gateway:
            await eventually(lambda: drained(gateway), "it is drained")
            file.unlink()
            assert (await knock(gateway.port, "/ws")).json()["reason"] == "draining"


async def test_parent_that_is_killed_on_the_way_has_its_children_end_as_by_sigterm() -> None:
    async with echo_worker() as worker:
        toml = "rate = 2\nburst = 50\ndrain = { sigterm_s = 3 }"
        async with serving_children(toml, worker.url) as gateway:
            clients, children = await newcomers(gateway, 10), await pids(gateway)
            await ask(gateway, "/drain", "POST")
            await eventually(lambda: _says(gateway, "moving"), "they drain")
            ending = asyncio.ensure_future(ends(clients))
            began = time.monotonic()
            gateway.process.kill()
            ended = await ending
            assert {end.code for end in ended} == {1012}
            assert all(end.told["ticket"] for end in ended)

            async def are_gone() -> bool:
                return not any(_lives(pid) for pid in children)

            await eventually(are_gone, "the children have ended", within_s=10)
            assert time.monotonic() - began < 9


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


class Told:
    """A socket that keeps what it was told."""

    age_s, is_leaving = 1.0, False

    def __init__(self) -> None:
        self.reason = ""

    async def invite(self, *, firm: bool) -> Invitation:
        """A calendar that takes its time."""
        await asyncio.sleep(0.1)
        return Invitation(1.0, "1.ticket")

    def close(self, code: int, reason: str, message: str | None = None) -> None:
        self.reason = reason

    def abort(self) -> None:
        raise AssertionError("nobody cuts it")


async def test_hints_for_the_rest_are_asked_for_so_long_and_then_drawn_as_far_apart_as_the_rate_needs() -> None:
    sockets = [Told() for _ in range(20 * LOT)]
    now = asyncio.get_running_loop().time()
    mover = Mover(OpenSockets(lambda: sockets), Schedule(now, 0.0), lambda: 10.0, None)
    assert await mover.close_rest(10.0) == len(sockets)
    assert asyncio.get_running_loop().time() - now < 3 * HINTING_S
    told = [json.loads(socket.reason) for socket in sockets]
    drawn = [each["retry_ms"] / 1_000 for each in told if "ticket" not in each]
    assert 0 < len(drawn) < len(sockets)
    assert min(drawn) >= 1
    assert 0.9 * LATEST_S < max(drawn) <= LATEST_S
