"""Published outages, played with a fleet: real gateways, a real Redis, real sockets."""

import asyncio
import json
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.herdgate_gateway.drain.draining import Ended, ask, ends, newcomers, over
from tests.herdgate_gateway.drain.test_fleet import _knows, toml
from tests.herdgate_gateway.gateways import echo_worker
from tests.herdgate_gateway.serving import Serving, serving
from tests.redis_servers import RedisServer, redis_server
from tests.wire import eventually, handshake, knock, raw


@contextmanager
def fleet(redis: RedisServer, worker: str, count: int, rate: float, **drain: float) -> Iterator[list[Serving]]:
    """So many gateways."""
    with ExitStack() as stack:
        yield [stack.enter_context(serving(toml(redis, rate, **drain), worker)) for _ in range(count)]


async def all_known(gateways: Sequence[Serving], count: int) -> None:
    for gateway in gateways:
        await eventually(lambda gateway=gateway: _knows(gateway, count), "all are in", within_s=10)  # type: ignore[misc]


async def test_case_3_3_slot_of_a_client_that_never_answers_its_close_frame_is_the_fleets_again() -> None:
    """The deadline of 5 s, literally: the process has ended 6 s after SIGTERM."""
    async with echo_worker() as worker:
        with redis_server() as redis, fleet(redis, worker.url, 2, 20, sigterm_s=5) as (one, other):
            await all_known((one, other), 2)
            async with raw(one.port, handshake("/ws")) as client:
                assert (await client.head())[0] == 101
                await eventually(lambda: _has_open(other, 1), "the fleet has one socket")
                began = time.monotonic()
                one.process.send_signal(signal.SIGTERM)
                opcode, payload = await client.frame()
                assert (opcode, payload[:2]) == (8, (1012).to_bytes(2))
                assert await over(one) == 0
                assert time.monotonic() - began <= 6
                assert await client.read() == b"", "its socket is gone"
            await eventually(lambda: _has_open(other, 0), "its slot is free")


async def _has_open(gateway: Serving, count: int) -> bool:
    """In the whole fleet, as this gateway sees it."""
    return await _metric(gateway, "herdgate_fleet_active") == count


async def test_case_3_14_of_three_that_are_told_at_once_among_six_one_sheds_at_a_time() -> None:
    async with echo_worker() as worker:
        with redis_server() as redis, fleet(redis, worker.url, 6, 40, max_draining=1) as gateways:
            await all_known(gateways, 6)
            told = gateways[:3]
            clients = [await newcomers(gateway, 8) for gateway in told]
            for gateway in told:
                await eventually(lambda gateway=gateway: _is_active(gateway, 8), "it shows its sockets")  # type: ignore[misc]
            ending = asyncio.ensure_future(asyncio.gather(*map(ends, clients)))
            answers = await asyncio.gather(*(ask(gateway, "/drain", "POST") for gateway in told))
            assert {answer.status_code for answer in answers} == {200}
            shed = sorted((min(end.at for end in one), max(end.at for end in one)) for one in await ending)
            assert all(last < first for (_, last), (first, _) in pairwise(shed)), shed
            refused = (await knock(told[0].port, "/ws")).json()["reason"]
            await eventually(lambda: _has_refused(told[0], refused), "it is counted, by its reason")
            await eventually(lambda: _is_active(told[0], 0), "it shows that they are gone")
            assert await _metric(told[0], "herdgate_pending") == 0
            assert [(await knock(gateway.port, "/ws")).status for gateway in gateways[3:]] == [101] * 3


async def _is_active(gateway: Serving, count: int) -> bool:
    return await _metric(gateway, "herdgate_active") == count


async def _has_refused(gateway: Serving, reason: str) -> bool:
    return await _metric(gateway, "herdgate_denied_total", reason=reason) > 0


async def _metric(gateway: Serving, name: str, **labels: str) -> float:
    families = text_string_to_metric_families((await ask(gateway, "/metrics")).text)
    found = [
        each.value
        for family in families
        for each in family.samples
        if each.name == name and labels.items() <= each.labels.items()
    ]
    return found[0]


async def test_sigterm_of_all_gateways_spreads_their_clients_which_return_at_the_rate_once_one_is_back() -> None:
    count, rate, burst, hold_s = 25, 30.0, 5, 0.2
    settings = f"rate = {rate}\nburst = {burst}\nhold_s = {hold_s}\ndrain = {{ sigterm_s = 8 }}\n"
    async with echo_worker() as worker:
        with redis_server() as redis, ExitStack() as stack:
            text = f'{settings}fleet = {{ redis = "{redis.url}" }}'
            gateways = [stack.enter_context(serving(text, worker.url)) for _ in range(3)]
            await all_known(gateways, 3)
            clients = [await newcomers(gateway, count) for gateway in gateways]
            began = time.monotonic()
            for gateway in gateways:
                gateway.process.send_signal(signal.SIGTERM)
            ended = [end for each in await asyncio.gather(*map(ends, clients)) for end in each]
            assert [await over(gateway) for gateway in gateways] == [0, 0, 0]
            assert time.monotonic() - began < 12, "the deadline, and a moment"
            assert {end.code for end in ended} == {1012}
            due = sorted(_due(end) - began for end in ended)
            for number, moment in enumerate(due):
                # Half of the rate in all; half a second until each knows of the others.
                assert moment >= (number - 3) / (rate / 2) - 0.5, f"client {number} of {due}"
            back = stack.enter_context(serving(text, worker.url))
            came = sorted(await asyncio.gather(*(_return(back, end) for end in ended)))
            for moment in came:
                within = [other for other in came if moment <= other < moment + 1]
                # A fifth more: seen from here, those who were let in one after the other may come together.
                assert len(within) <= burst + rate * (1.2 + hold_s), came
            assert came[-1] - came[0] < 3 * 3 * count / rate, "and not much slower"


def _due(end: Ended) -> float:
    moment: float = end.at + end.told["retry_ms"] / 1_000
    return moment


async def _return(gateway: Serving, end: Ended) -> float:
    """When it is in again: it comes when it was told, with its ticket, and as often as it is told."""
    due, ticket = _due(end), end.told.get("ticket")
    while True:
        await asyncio.sleep(due - time.monotonic())
        answer = await knock(gateway.port, "/ws", headers=[("Herdgate-Ticket", ticket)] if ticket else [])
        if answer.status == 101:
            return time.monotonic()
        told: Any = json.loads(answer.body)
        due, ticket = time.monotonic() + told["retry_ms"] / 1_000, told["ticket"]
