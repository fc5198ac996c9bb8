"""`herdgate drain`, the file, and SIGTERM on top of them; with several processes too."""

import asyncio
import json
import os
import signal
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.herdgate_gateway.drain.draining import ask, ends, newcomers, over, steps
from tests.herdgate_gateway.gateways import echo_worker
from tests.herdgate_gateway.processes.children import pids, serving_children
from tests.herdgate_gateway.serving import Serving, serving
from tests.wire import eventually, knock

TOML = "rate = 20\nburst = 50\ndrain = { sigterm_s = 20 }"


async def drained(gateway: Serving) -> bool:
    drain = (await ask(gateway, "/status.json")).json()["drain"]
    return drain is not None and drain["state"] == "drained"


async def test_call_returns_once_nobody_is_left_and_sigterm_ends_the_process() -> None:
    async with echo_worker() as worker:
        with serving(TOML, worker.url) as gateway:
            clients = await newcomers(gateway, 10)
            ended, finished = await asyncio.gather(ends(clients), asyncio.to_thread(gateway.control, "drain", "--wait"))
            assert (finished.returncode, finished.stdout) == (0, "drained\n"), finished.stderr
            assert {end.code for end in ended} == {1012}
            assert (await ask(gateway, "/readyz")).text == "drained\n"
            assert (await knock(gateway.port, "/ws")).json()["reason"] == "draining"
            assert gateway.process.poll() is None, "it stays, for who still comes"
            began = time.monotonic()
            assert await asyncio.to_thread(gateway.end) == 0
            assert time.monotonic() - began < 10
            assert steps(gateway)[-1][2] == "SIGTERM: the process ends"


async def test_drain_is_shown_while_it_goes_on_and_told_twice_changes_nothing() -> None:
    async with echo_worker() as worker:
        with serving("rate = 2\nburst = 50\ndrain = { sigterm_s = 1 }", worker.url) as gateway:
            clients = await newcomers(gateway, 10)
            assert (await ask(gateway, "/status.json")).json()["drain"] is None
            assert (await ask(gateway, "/drain", "POST", deadline="60")).json() == {"deadline_s": 60.0}
            await eventually(lambda: _is_in(gateway, "draining"), "it drains")
            assert (await ask(gateway, "/drain", "POST", deadline="1")).status_code == 200
            drain = (await ask(gateway, "/status.json")).json()["drain"]
            assert (drain["trigger"], drain["state"]) == ("call", "draining")
            assert 50 < drain["left_s"] <= 60
            assert 0 < drain["open"] <= 10
            families = text_string_to_metric_families((await ask(gateway, "/metrics")).text)
            samples = {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}
            assert samples["herdgate_drain_state", "draining"] == 1
            assert samples["herdgate_drain_state", "drained"] == 0
            assert 50 < samples["herdgate_drain_left_seconds",] <= 60
            assert samples["herdgate_draining", "default"] == 1
            shown = await asyncio.to_thread(gateway.control, "status")
            assert "drain by call: draining for" in shown.stdout.splitlines()[1]
            await asyncio.to_thread(gateway.end)
            assert len(await ends(clients)) == 10


async def _is_in(gateway: Serving, state: str) -> bool:
    drain = (await ask(gateway, "/status.json")).json()["drain"]
    return drain is not None and drain["state"] == state


async def test_sigterm_on_the_way_brings_its_own_deadline() -> None:
    async with echo_worker() as worker:
        with serving("rate = 2\nburst = 50\ndrain = { sigterm_s = 2 }", worker.url) as gateway:
            clients = await newcomers(gateway, 12)
            assert (await ask(gateway, "/drain", "POST")).status_code == 200
            began = time.monotonic()
            gateway.process.send_signal(signal.SIGTERM)
            ended = await ends(clients)
            assert await over(gateway) == 0
            assert time.monotonic() - began < 9
            assert {end.code for end in ended} == {1012}
            assert any(what.startswith("SIGTERM on the way: over within 2.0 s") for _, _, what in steps(gateway))


async def test_a_file_drains_it(tmp_path: Path) -> None:
    file = tmp_path / "drain"
    toml = f"rate = 20\nburst = 50\ndrain = {{ file = {json.dumps(str(file))}, file_s = 7 }}"
    async with echo_worker() as worker:
        with serving(toml, worker.url) as gateway:
            clients = await newcomers(gateway, 3)
            assert (await ask(gateway, "/readyz")).status_code == 200
            file.touch()
            await eventually(lambda: _says_ready(gateway, "dra"), "readiness fails")
            assert {end.code for end in await ends(clients)} == {1012}
            await eventually(lambda: drained(gateway), "it is drained")
            assert steps(gateway)[0][2] == "the file: to be over within 7 s"


@pytest.mark.parametrize("deadline", ["-1", "soon", "nan", "100000"])
async def test_deadline_that_is_none_is_one_line_and_changes_nothing(deadline: str) -> None:
    async with echo_worker() as worker:
        with serving(TOML, worker.url) as gateway:
            finished = await asyncio.to_thread(gateway.control, "drain", "--deadline", deadline)
            assert finished.returncode != 0
            (line,) = finished.stderr.strip().splitlines()
            assert f"deadline: got {deadline}" in line.replace("-1.0", "-1").replace("100000.0", "100000")
            assert (await knock(gateway.port, "/ws")).status == 101


async def test_children_drain_together_and_share_the_pace() -> None:
    async with echo_worker() as worker, serving_children(TOML, worker.url) as gateway:
        clients = await newcomers(gateway, 20)
        began = time.monotonic()
        assert (await ask(gateway, "/drain", "POST")).status_code == 200
        await eventually(lambda: _says_ready(gateway, "draining"), "it says so")
        ended = await ends(clients)
        assert {end.code for end in ended} == {1012}
        assert all(end.told["ticket"] for end in ended)
        assert max(end.at for end in ended) - began > 1, "at half of the rate, all together: ten a second"
        await eventually(lambda: drained(gateway), "all are drained")
        assert await asyncio.to_thread(gateway.end) == 0
        assert gateway.log().count(": drained") == 2


async def test_child_that_takes_the_place_of_one_that_drained_lets_nobody_in() -> None:
    async with echo_worker() as worker, serving_children(TOML, worker.url) as gateway:
        assert (await ask(gateway, "/drain", "POST")).status_code == 200
        await eventually(lambda: drained(gateway), "all are drained")
        before = await pids(gateway)
        os.kill(before[0], signal.SIGKILL)
        await eventually(lambda: _all_live(gateway, before[0]), "another one is there", within_s=20)
        await eventually(lambda: drained(gateway), "it is drained as well")
        assert {(await knock(gateway.port, "/ws")).json()["reason"] for _ in range(6)} == {"draining"}


async def _all_live(gateway: Serving, old: int) -> bool:
    children = (await ask(gateway, "/status.json")).json()["children"]
    return all(child["pid"] != old and child["state"] == "stopping" for child in children)


async def _says_ready(gateway: Serving, why: str) -> bool:
    answer = await ask(gateway, "/readyz")
    return answer.status_code == 503 and answer.text.startswith(why)
