"""SIGTERM, and what comes on top of it: the whole process, real sockets, real workers."""

import asyncio
import json
import signal
import time
from pathlib import Path

import pytest

from tests.herdgate_gateway.drain.draining import ask, ends, newcomers, over, steps
from tests.herdgate_gateway.gateways import ScriptedWorker, Visitor, echo_worker, scripted_worker
from tests.herdgate_gateway.serving import Serving, launched, serving
from tests.servers import START_S, poll
from tests.wire import ask as ask_port
from tests.wire import eventually, handshake, knock, raw

MODES = pytest.mark.parametrize("mode", ["splice", "messages"])


def settings(mode: str, rate: float, burst: float, **drain: object) -> str:
    table = ", ".join(f"{name} = {json.dumps(value)}" for name, value in drain.items())
    return f'rate = {rate}\nburst = {burst}\ndrain = {{ {table} }}\nrelay = {{ mode = "{mode}" }}'


@MODES
async def test_sockets_go_one_by_one_oldest_first_each_with_a_firm_slot(mode: str) -> None:
    async with echo_worker() as worker:
        with serving(settings(mode, 20, 50, message="moving you"), worker.url) as gateway:
            clients = await newcomers(gateway, 12)
            began = time.monotonic()
            gateway.process.send_signal(signal.SIGTERM)
            ended = await ends(clients)
            assert await over(gateway) == 0
            assert {end.code for end in ended} == {1012}
            assert all(0 < end.told["retry_ms"] < 500 and end.told["ticket"] for end in ended)
            assert len({end.told["ticket"] for end in ended}) == 12
            assert {tuple(end.messages) for end in ended} == {("moving you",)}
            moments = [end.at - began for end in ended]
            assert moments == sorted(moments), "the oldest goes first"
            assert 0.9 < moments[-1] < 9, "at half of the rate: ten a second"
            assert "Traceback" not in gateway.log()


@MODES
async def test_case_3_1_a_hundred_clients_read_a_close_frame_and_the_process_ends_in_time(mode: str) -> None:
    async with echo_worker() as worker:
        with serving(settings(mode, 1_000, 1_000, sigterm_s=5), worker.url) as gateway:
            clients = await newcomers(gateway, 100)
            began = time.monotonic()
            gateway.process.send_signal(signal.SIGTERM)
            assert {end.code for end in await ends(clients)} == {1012}
            assert await over(gateway) == 0
            assert time.monotonic() - began < 6


@MODES
async def test_what_is_left_at_the_deadline_is_closed_together_with_hints(mode: str) -> None:
    async with echo_worker() as worker:
        with serving(settings(mode, 2, 50, sigterm_s=3), worker.url) as gateway:
            clients = await newcomers(gateway, 20)
            began = time.monotonic()
            gateway.process.send_signal(signal.SIGTERM)
            ended = await ends(clients)
            assert await over(gateway) == 0
            assert time.monotonic() - began < 9
            assert {end.code for end in ended} == {1012}
            late = [end for end in ended if end.at - began > 1.9]
            assert len(late) >= 15
            assert all(end.told["retry_ms"] >= 1_000 for end in late[3:])
            said = [what for _, _, what in steps(gateway)]
            assert any("s short: the last" in what for what in said), "it says beforehand that time will not do"
            assert any(what.startswith("time is up: the rest") for what in said)


@MODES
async def test_case_3_3_client_that_never_answers_its_close_frame_is_cut_at_the_deadline(mode: str) -> None:
    async with echo_worker() as worker:
        with serving(settings(mode, 10, 10, sigterm_s=2), worker.url) as gateway:
            async with raw(gateway.port, handshake("/ws")) as client:
                assert (await client.head())[0] == 101
                began = time.monotonic()
                gateway.process.send_signal(signal.SIGTERM)
                opcode, payload = await client.frame()
                assert (opcode, payload[:2]) == (8, (1012).to_bytes(2))
                assert await over(gateway) == 0
                assert 1.5 < time.monotonic() - began < 9


async def test_case_3_4_arrivals_are_answered_and_health_goes_on_until_the_end() -> None:
    async with echo_worker() as worker:
        with serving(settings("splice", 4, 50, sigterm_s=20), worker.url) as gateway:
            clients = await newcomers(gateway, 4)
            gateway.process.send_signal(signal.SIGTERM)
            await eventually(lambda: _is_draining(gateway.port), "arrivals are refused")
            for _ in range(3):
                denied = await knock(gateway.port, "/ws")
                assert (denied.status, denied.json()["reason"]) == (503, "draining")
                assert denied.json()["retry_ms"] >= 1_000
                assert denied.headers["connection"] == "close"
                assert (await ask(gateway, "/readyz")).status_code == 503
                await eventually(lambda: _gives_reason(gateway, "draining\n"), "it says why")
                assert (await ask(gateway, "/healthz")).status_code == 200
                assert (await ask_port(gateway.port, "/healthz")).status == 200
            assert await ends(clients)
            assert await over(gateway) == 0


async def _is_draining(port: int) -> bool:
    return (await knock(port, "/ws")).status == 503


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
async def test_second_sign_closes_the_rest_at_once_with_hints(sign: signal.Signals) -> None:
    async with echo_worker() as worker:
        with serving(settings("splice", 2, 50, sigterm_s=60), worker.url) as gateway:
            clients = await newcomers(gateway, 10)
            gateway.process.send_signal(signal.SIGTERM)
            await eventually(lambda: _says(gateway, "moving"), "it moves them")
            began = time.monotonic()
            gateway.process.send_signal(sign)
            ended = await ends(clients)
            assert await over(gateway) == 0
            assert time.monotonic() - began < 5
            assert {end.code for end in ended} == {1012}
            assert sum(end.told["retry_ms"] >= 1_000 for end in ended) >= 6


async def _says(gateway: Serving, what: str) -> bool:
    return what in gateway.log()


async def test_empty_gateway_ends_at_once() -> None:
    async with echo_worker() as worker:
        with serving(settings("splice", 1, 1, sigterm_s=60), worker.url) as gateway:
            began = time.monotonic()
            assert await asyncio.to_thread(gateway.end) == 0
            assert time.monotonic() - began < 12
            assert [what for _, _, what in steps(gateway)][-1] == "drained"


async def test_listeners_stay_open_while_balancers_notice_even_of_an_empty_gateway() -> None:
    async with echo_worker() as worker:
        with serving(settings("splice", 100, 100, sigterm_s=60, settle_s=4), worker.url) as gateway:
            began = time.monotonic()
            gateway.process.send_signal(signal.SIGTERM)
            await eventually(lambda: _is_draining(gateway.port), "arrivals are refused")
            while time.monotonic() - began < 1.5:
                assert (await knock(gateway.port, "/ws")).status == 503
            assert await over(gateway) == 0
            assert time.monotonic() - began > 4


async def test_sockets_are_left_alone_while_balancers_notice() -> None:
    async with echo_worker() as worker:
        with serving(settings("splice", 100, 100, sigterm_s=60, settle_s=1), worker.url) as gateway:
            clients = await newcomers(gateway, 3)
            began = time.monotonic()
            gateway.process.send_signal(signal.SIGTERM)
            assert min(end.at for end in await ends(clients)) - began >= 0.9
            assert await over(gateway) == 0


async def test_deadline_of_0_closes_all_at_once_with_hints() -> None:
    async with echo_worker() as worker:
        with serving(settings("splice", 10, 50, sigterm_s=0), worker.url) as gateway:
            clients = await newcomers(gateway, 20)
            began = time.monotonic()
            gateway.process.send_signal(signal.SIGTERM)
            ended = await ends(clients)
            assert await over(gateway) == 0
            assert time.monotonic() - began < 3
            assert {end.code for end in ended} == {1012}
            assert all(end.told["retry_ms"] >= 1_000 for end in ended)


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_sign_during_the_start_ends_it_cleanly(sign: signal.Signals) -> None:
    with launched('rate = 5\nworkers = ["ws://127.0.0.1:9"]') as gateway:
        poll(lambda: _heeds(gateway.process.pid, sign), "it holds signs to stop", within_s=START_S)
        gateway.process.send_signal(sign)
        assert gateway.process.wait(20) == 0
        assert "Traceback" not in gateway.log()
        assert not (gateway.folder / "control").exists()


def _heeds(pid: int, sign: signal.Signals) -> bool:
    """True if the process lets this signal wait, or has started meanwhile and handles them (proc(5))."""
    words = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines())
    blocked, caught = int(words["SigBlk"], 16), int(words["SigCgt"], 16)
    return bool(blocked >> (sign - 1) & 1 or caught >> (signal.SIGTERM - 1) & 1)


@MODES
async def test_handshake_that_waits_for_its_worker_gets_a_word(mode: str) -> None:
    async def silent(visitor: Visitor) -> None:
        await visitor.reader.read()
        await visitor.reader.read()

    async with scripted_worker(silent) as worker:
        with serving(settings(mode, 10, 10, sigterm_s=1), worker.url) as gateway:
            asked = asyncio.ensure_future(knock(gateway.port, "/ws"))
            await eventually(lambda: _is_dialled(worker), "the worker is dialled")
            gateway.process.send_signal(signal.SIGTERM)
            denied = await asyncio.wait_for(asked, 10)
            assert (denied.status, denied.json()["reason"]) == (503, "draining")
            assert denied.json()["retry_ms"] >= 1_000
            assert await over(gateway) == 0
            assert "Traceback" not in gateway.log()


async def _is_dialled(worker: ScriptedWorker) -> bool:
    return bool(worker.visits)


async def test_handshake_that_is_held_gets_a_word() -> None:
    async with echo_worker() as worker:
        with serving("max_wait_s = 20\n" + settings("splice", 0.2, 1, sigterm_s=30), worker.url) as gateway:
            assert (await knock(gateway.port, "/ws")).status == 101
            hint = (await knock(gateway.port, "/ws")).json()
            due = time.monotonic() + hint["retry_ms"] / 1_000
            await eventually(lambda: _comes_in(gateway.port), "somebody takes the token", within_s=15)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            held = asyncio.ensure_future(knock(gateway.port, "/ws", headers=[("Herdgate-Ticket", hint["ticket"])]))
            await eventually(lambda: _holds_one(gateway), "it is held for its firm slot")
            began = time.monotonic()
            gateway.process.send_signal(signal.SIGTERM)
            denied = await asyncio.wait_for(held, 10)
            assert time.monotonic() - began < 4, "it does not wait for a slot that is of no use"
            assert (denied.status, denied.json()["reason"]) == (503, "draining")
            assert denied.json()["ticket"]
            assert await over(gateway) == 0


async def _comes_in(port: int) -> bool:
    return (await knock(port, "/ws")).status == 101


async def _gives_reason(gateway: Serving, why: str) -> bool:
    return (await ask(gateway, "/readyz")).text == why


async def _holds_one(gateway: Serving) -> bool:
    status = (await ask(gateway, "/status.json")).json()
    return bool(status["gates"]["default"]["held"] == 1)


async def test_sigterm_says_how_many_were_gone_before_it_and_what_to_do_if_a_balancer_cut_them() -> None:
    async with echo_worker() as worker:
        with serving(settings("splice", 100, 100), worker.url) as gateway:
            clients = await newcomers(gateway, 10)
            for client in clients[:8]:
                client.transport.abort()
            await eventually(lambda: _has_open(gateway, 2), "they are gone")
            gateway.process.send_signal(signal.SIGTERM)
            assert len(await ends(clients[8:])) == 2
            assert await over(gateway) == 0
            told = steps(gateway)[0][2]
            assert "8 clients were gone without a close frame in the last 30 s: if a balancer cut them" in told


async def _has_open(gateway: Serving, count: int) -> bool:
    status = (await ask(gateway, "/status.json")).json()
    return bool(status["gates"]["default"]["open"] == count)
