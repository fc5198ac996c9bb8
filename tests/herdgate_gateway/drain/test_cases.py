"""Published outages, played with one gateway: real processes, real sockets."""

import asyncio
import json
import re
import signal
import time
from contextlib import AsyncExitStack
from typing import NamedTuple

import pytest

from herdgate_gateway.descriptors import raise_limit
from tests.herdgate_gateway.drain.draining import Ended, ask, ends, newcomers, over, steps
from tests.herdgate_gateway.gateways import Visitor, echo_worker, scripted_worker
from tests.herdgate_gateway.serving import Serving, serving
from tests.wire import Raw, eventually, handshake, knock, raw

AT_ONCE = 100


async def test_case_3_4_until_balancers_have_noticed_all_arrivals_are_answered_and_nobody_is_moved() -> None:
    """Propagation is 4 s instead of 10, and half of it is filled with ten handshakes a second instead of one."""
    async with echo_worker() as worker:
        toml = "rate = 100\nburst = 100\ndrain = { sigterm_s = 20, settle_s = 4 }"
        with serving(toml, worker.url) as gateway:
            clients = await newcomers(gateway, 10)
            ending = asyncio.ensure_future(ends(clients))
            began = time.monotonic()
            gateway.process.send_signal(signal.SIGTERM)
            await eventually(lambda: _fails_readiness(gateway), "readiness fails", within_s=1.5)
            while time.monotonic() - began < 2:
                denied = await knock(gateway.port, "/ws")
                assert denied.status == 503
                assert int(denied.headers["retry-after"]) >= 1
                assert denied.headers["connection"] == "close"
                assert (await ask(gateway, "/readyz")).status_code == 503
                assert (await ask(gateway, "/healthz")).status_code == 200
                assert not ending.done()
                await asyncio.sleep(0.1)
            assert min(end.at for end in await ending) - began >= 4
            assert await over(gateway) == 0


async def _fails_readiness(gateway: Serving) -> bool:
    return (await ask(gateway, "/readyz")).status_code == 503 and (await knock(gateway.port, "/ws")).status == 503


@pytest.mark.parametrize(
    ("sockets", "told", "late"),
    [
        (150, r"moving 150 sockets: 1\.5 s at 100/s", 0),
        (500, r"moving 500 sockets: 5\.0 s at 100/s, 2\.\d s short: the last 2\d\d are closed together", 200),
    ],
)
async def test_case_3_16_sockets_go_at_the_spare_rate_and_what_will_be_late_is_said_first(
    sockets: int, told: str, late: int
) -> None:
    """A fortieth of 6,000 and 20,000 sockets and of 120 s, at the same 100/s: half of the rate is spare."""
    async with echo_worker() as worker:
        with serving("rate = 200\nburst = 600\ndrain = { sigterm_s = 4 }", worker.url) as gateway:
            clients = await newcomers(gateway, sockets)
            began = time.monotonic()
            gateway.process.send_signal(signal.SIGTERM)
            ended = await ends(clients)
            assert await over(gateway) == 0
            assert time.monotonic() - began < 8
            assert {end.code for end in ended} == {1012}
            (outlook,) = [each for each in steps(gateway) if each[2].startswith("moving")]
            assert outlook[1] == sockets, "nobody is closed before it is said"
            assert re.fullmatch(told, outlook[2]), outlook
            paced = sorted(end.at - began for end in ended if not _is_hint(end))
            for number, moment in enumerate(paced):
                assert moment >= (number - 2) / 100, f"socket {number} of {paced}"
            assert abs(len(ended) - len(paced) - late) <= 30
            hints = [end.told["retry_ms"] / 1_000 for end in ended if _is_hint(end)]
            assert not late or max(hints) >= len(hints) / 200, "the rest comes back at the rate"


def _is_hint(end: Ended) -> bool:
    """Who is moved at a firm slot has less than half a second; a hint is a second at least."""
    return bool(end.told["retry_ms"] >= 1_000)


class Arrival(NamedTuple):
    """A raw client and its answer.

    Attributes:
        due: when it is to come back, monotonic seconds. None: it is in.
        ticket: to be shown then.
    """

    client: Raw
    due: float | None = None
    ticket: str = ""


async def test_case_3_12_a_loss_of_all_sockets_is_an_event_frees_all_slots_and_spreads_who_comes_back() -> None:
    """2,000 of 2,000 sockets within 2 s, literally; who comes back is told to at 50/s."""
    raise_limit()
    count, rate = 2_000, 50
    async with scripted_worker(_stay) as worker:
        with serving(f"rate = {rate}\nhint_cap_s = 600", worker.url) as gateway:
            await _set_rate(gateway, 5 * count)  # to be ready sooner
            async with AsyncExitStack() as crowd:
                clients = await _crowd(gateway, crowd, count)
                await eventually(lambda: _has_open(gateway, count), "all are in")
                await _set_rate(gateway, rate)
                began = time.monotonic()
                for each in clients:
                    each.reset()
                assert time.monotonic() - began < 2
                await eventually(lambda: _has_open(gateway, 0), "all slots are free", within_s=5)
                await eventually(lambda: _says(gateway, "mass_disconnect: 2000 of 2000 clients"), "it is an event")
            async with AsyncExitStack() as crowd:
                turn = asyncio.Semaphore(AT_ONCE)
                back = await asyncio.gather(*(_arrive(gateway, crowd, turn) for _ in range(count)))
                due = sorted(each.due for each in back if each.due is not None)
            assert len(due) > count / 2, "most have to wait"
            spread_s = due[-1] - due[0]
            assert spread_s >= 0.8 * len(due) / rate, "as long as the rate needs for so many"
            first_half = [moment for moment in due if moment < due[0] + spread_s / 2]
            assert 0.3 < len(first_half) / len(due) < 0.7, "evenly"
            assert gateway.log().count("mass_disconnect") == 1


async def _set_rate(gateway: Serving, rate: int) -> None:
    finished = await asyncio.to_thread(gateway.control, "rate", str(rate))
    assert finished.returncode == 0, finished.stderr


async def _stay(visitor: Visitor) -> None:
    """Let it in, until there is a word from it: that it is gone."""
    await visitor.accept()
    await visitor.reader.read(1)


async def _crowd(gateway: Serving, crowd: AsyncExitStack, count: int) -> list[Raw]:
    """So many raw clients that are in; who is refused at first comes again when told, with its ticket."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def enter() -> Raw:
        arrival = await _arrive(gateway, crowd, turn)
        while arrival.due is not None:
            await asyncio.sleep(arrival.due - time.monotonic())
            arrival = await _arrive(gateway, crowd, turn, arrival.ticket)
        return arrival.client

    return list(await asyncio.gather(*(enter() for _ in range(count))))


async def _arrive(gateway: Serving, crowd: AsyncExitStack, turn: asyncio.Semaphore, ticket: str = "") -> Arrival:
    shown = [("Herdgate-Ticket", ticket)] if ticket else []
    async with turn:
        client = await crowd.enter_async_context(raw(gateway.port, handshake("/ws", headers=shown)))
        status, headers = await client.head()
        if status == 101:
            return Arrival(client)
        told = json.loads(await client.read(int(headers["content-length"])))
        assert (status, told["reason"]) == (429, "rate")
        return Arrival(client, time.monotonic() + told["retry_ms"] / 1_000, told["ticket"])


async def _has_open(gateway: Serving, count: int) -> bool:
    status = (await ask(gateway, "/status.json")).json()
    return bool(status["gates"]["default"]["open"] == count)


async def _says(gateway: Serving, what: str) -> bool:
    return what in gateway.log()
