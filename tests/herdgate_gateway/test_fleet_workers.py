"""Gateways of one fleet and workers that report to it: real processes, real sockets, a real Redis.

What a worker holds is counted by the worker itself, so no counter of a gateway is believed.
"""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from typing import Any

import pytest
from uvicorn import Config, Server
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus

from herdgate import Fleet, LoadReport
from herdgate.asgi import Receive, Scope, Send
from herdgate_gateway.breaker import BreakerSettings
from herdgate_gateway.workers import WorkerPool
from tests.herdgate_gateway.serving import Serving, serving
from tests.redis_servers import RedisServer, redis_server
from tests.wire import eventually, knock, open_socket

A, B = "ws://127.0.0.1:9001", "ws://127.0.0.1:9002"
GRACE_S = 12.0  # until a killed gateway's places are free: 10 s, and a report


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


class Worker:
    """An app that accepts after `setup_s`, and knows the most sockets it ever held."""

    def __init__(self) -> None:
        self.setup_s = 0.0
        self.held = self.most = 0
        self.gateways: set[bytes] = set()
        self.url = ""
        self.report: LoadReport

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        self.gateways |= {value for name, value in scope["headers"] if name == b"herdgate-gateway"}
        self.held += 1
        self.most = max(self.most, self.held)
        try:
            await receive()
            message = asyncio.ensure_future(receive())
            if (await asyncio.wait({message}, timeout=self.setup_s))[0]:
                return  # the client has left
            await send({"type": "websocket.accept"})
            while (await message)["type"] != "websocket.disconnect":
                message = asyncio.ensure_future(receive())
        finally:
            self.held -= 1


@asynccontextmanager
async def worker(redis: RedisServer, fleet: str, capacity: int | None) -> AsyncIterator[Worker]:
    """A worker that has reported."""
    app = Worker()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        app.url = f"ws://127.0.0.1:{listener.getsockname()[1]}"
        app.report = LoadReport(app, Fleet(redis.url, fleet), name=app.url, capacity=capacity)
        server = Server(Config(app.report, log_config=None, ws="websockets-sansio", lifespan="on"))
        serving_it = asyncio.ensure_future(server._serve([listener]))
        try:
            await until(lambda: redis.command("EXISTS", f"{{herdgate:{fleet}}}:worker:{app.url}"), "it reports")
            yield app
        finally:
            server.should_exit = True
            await asyncio.wait_for(serving_it, 10)


@contextmanager
def fleet_of(
    redis: RedisServer, fleet: str, workers: Sequence[str], count: int = 3, **more: Any
) -> Iterator[list[Serving]]:
    """Gateways that have learned: 10 s of fleet time are over."""
    settings = "".join(f"{name} = {value}\n" for name, value in more.items())
    toml = f'rate = 500\n[fleet]\nredis = "{redis.url}"\nname = "{fleet}"\n{settings}'
    with ExitStack() as stack:
        gateways = [stack.enter_context(serving(toml, *workers)) for _ in range(count)]
        redis.command("HINCRBYFLOAT", f"{{herdgate:{fleet}}}:calendar", "born", -10)
        yield gateways


async def until(condition: Any, what: str, *, within_s: float = 8.0) -> None:
    async def holds() -> bool:
        return bool(condition())

    await eventually(holds, what, within_s=within_s)


async def come_in(stack: AsyncExitStack, gateways: Sequence[Serving], count: int) -> list[ClientConnection]:
    """So many clients at once, in turns at each gateway; those that are let in, for as long as the stack lasts."""
    sockets = [open_socket(gateways[number % len(gateways)].port, "/") for number in range(count)]
    entered = await asyncio.gather(*map(stack.enter_async_context, sockets), return_exceptions=True)
    refused = [error for error in entered if not isinstance(error, ClientConnection)]
    assert all(isinstance(error, InvalidStatus) for error in refused), refused
    return [client for client in entered if isinstance(client, ClientConnection)]


def test_names_are_those_whose_breaker_lets_arrivals_through() -> None:
    pool = WorkerPool([A, B], BreakerSettings(failures=1))
    assert sorted(pool.names()) == [A, B]
    taken = pool.choose(A)
    assert taken is not None
    with taken:
        taken.failed("no")
    assert pool.names() == [B]


def test_the_one_that_is_named_is_taken_however_many_sockets_it_has() -> None:
    pool = WorkerPool([A, B])
    taken = [pool.choose(A) for _ in range(5)]
    assert [assignment and assignment.worker.url for assignment in taken] == [A] * 5


def test_one_that_was_removed_since_it_was_granted_is_taken_all_the_same() -> None:
    pool = WorkerPool([A, B])
    pool.replace([A])
    assert pool.names() == [A]
    taken = pool.choose(B)
    assert taken is not None
    assert taken.worker.url == B


def test_one_that_has_broken_or_gone_since_is_not_replaced_by_another() -> None:
    pool = WorkerPool([A, B], BreakerSettings(failures=1))
    taken = pool.choose(A)
    assert taken is not None
    with taken:
        taken.failed("no")
    assert pool.choose(A) is None
    assert pool.choose("ws://gone:1") is None


def test_no_more_are_named_than_a_call_can_name() -> None:
    assert len(WorkerPool([f"ws://w{number}:1" for number in range(300)]).names()) == 254


def test_a_ramp_counts_a_batch_once() -> None:
    now = 0.0
    pool = WorkerPool([A], BreakerSettings(failures=1, open_s=1, ramp_s=10), lambda: now)
    taken = pool.choose(A)
    assert taken is not None
    with taken:
        taken.failed("no")
    now = 1.0
    assert pool.names() == [A]
    probe = pool.choose(A)
    assert probe is not None
    with probe:
        probe.connected()
    now = 2.0
    offered = sum(bool(pool.names()) and pool.choose(A) is not None for _ in range(50))
    assert 4 <= offered <= 6, "a tenth"


async def test_three_gateways_fill_two_workers_exactly_and_never_beyond(redis: RedisServer) -> None:
    async with worker(redis, "fill", 7) as one, worker(redis, "fill", 4) as two:
        with fleet_of(redis, "fill", [one.url, two.url]) as gateways:
            for crowd in range(3):
                async with AsyncExitStack() as stack:
                    clients = await come_in(stack, gateways, 20)
                    clients += await come_in(stack, gateways, 20)
                    await until(lambda: one.held + two.held <= 11, "those refused have gone")
                    assert (len(clients), one.held, two.held) == (11, 7, 4), crowd
                    answer = await knock(gateways[crowd].port, "/")
                    assert answer.status == 503
                    assert answer.json()["reason"] == "full"
                    assert answer.json()["retry_ms"] >= 1_000
                    assert answer.json()["ticket"]
                await until(lambda: one.held + two.held == 0, "all have gone")
                await _until_free(redis, "fill")
            assert (one.most, two.most) == (7, 4)
            assert len(one.gateways | two.gateways) == 3


async def test_clients_that_leave_in_any_state_give_their_places_back(redis: RedisServer) -> None:
    async with worker(redis, "leave", 5) as one:
        one.setup_s = 0.2
        with fleet_of(redis, "leave", [one.url], 2) as gateways:
            for after_s in (0.0, 0.01, 0.1, 0.3):
                crowd = [asyncio.ensure_future(knock(gateways[turn % 2].port, "/")) for turn in range(12)]
                await asyncio.sleep(after_s)
                for client in crowd:
                    client.cancel()
                await asyncio.gather(*crowd, return_exceptions=True)
            await until(lambda: one.held == 0, "all have gone")
            await _until_free(redis, "leave")
            async with AsyncExitStack() as stack:
                assert len(await come_in(stack, gateways, 20)) == 5
            assert one.most == 5


async def test_capacities_hold_while_redis_is_away() -> None:
    with redis_server() as redis:
        async with worker(redis, "away", 9) as one:
            with fleet_of(redis, "away", [one.url]) as gateways:
                async with AsyncExitStack() as stack:
                    await come_in(stack, gateways[:1], 3)

                    async def all_know() -> bool:
                        told = [await asyncio.to_thread(gateway.status) for gateway in gateways]
                        return all(status["gates"]["default"]["fleet"]["open"] == 3 for status in told)

                    await eventually(all_know, "every gateway knows what is left", within_s=5)
                    redis.kill()

                    async def fills_up() -> bool:
                        await come_in(stack, gateways, 6)
                        return one.held == 9

                    await eventually(fills_up, "each gateway fills its part", within_s=10)
                    await come_in(stack, gateways, 12)
                await until(lambda: one.held == 0, "all have gone")
                async with AsyncExitStack() as stack:
                    await eventually(fills_up, "places that are left are taken again", within_s=10)
                await until(lambda: one.held == 0, "all have gone")
        assert one.most == 9


async def test_a_killed_gateway_s_places_are_free_after_its_time(redis: RedisServer) -> None:
    async with worker(redis, "killed", 6) as one:
        with fleet_of(redis, "killed", [one.url], 3) as gateways:
            async with AsyncExitStack() as stack:
                await come_in(stack, gateways[:1], 6)
                assert one.held == 6
                gateways[0].end(signal.SIGKILL)
                await until(lambda: one.held == 0, "its sockets are gone")

                async def comes_in() -> bool:
                    return bool(await come_in(stack, gateways[1:], 1))

                await eventually(comes_in, "a place is free", within_s=GRACE_S)
                await until(lambda: one.held == 1, "it is held")
                await asyncio.gather(*(come_in(stack, gateways[1:], 10) for _ in range(2)))
                assert one.held == 6
            assert one.most == 6


async def test_a_worker_that_drains_gets_nobody_and_keeps_who_is_there(redis: RedisServer) -> None:
    async with worker(redis, "drain", 5) as one, worker(redis, "drain", 5) as two:
        with fleet_of(redis, "drain", [one.url, two.url], 2) as gateways:
            async with AsyncExitStack() as stack:
                await come_in(stack, gateways, 4)
                there = one.held
                assert there == 2
                one.report.drain()
                key = f"{{herdgate:drain}}:worker:{one.url}"
                await until(lambda: redis.command("HGET", key, "state") == b"DRAINING", "it is told")
                await come_in(stack, gateways, 10)
                assert (one.held, two.held) == (there, 5)
                one.report.resume()
                await until(lambda: redis.command("HGET", key, "state") == b"UP", "it is told")
                await come_in(stack, gateways, 10)
                assert (one.held, two.held) == (5, 5)


async def test_a_slow_worker_slows_the_fleet_and_a_fast_one_restores_it(redis: RedisServer) -> None:
    async with worker(redis, "slow", None) as one:
        control = {"rate_min": 100, "setup_target_s": 0.2}
        with fleet_of(redis, "slow", [one.url], 2, **control) as gateways:
            one.setup_s = 0.5

            async def rate_is(least: float, most: float) -> bool:
                await asyncio.gather(*(knock(gateway.port, "/") for gateway in gateways))
                status = await asyncio.to_thread(gateways[0].status)
                return bool(least <= status["gates"]["default"]["rate"] <= most)

            await eventually(lambda: rate_is(0, 250), "it has fallen twice", within_s=10)
            one.setup_s = 0.0
            one.report._load.times.clear()
            await eventually(lambda: rate_is(0, 499), "it stays below for a while", within_s=1)
            lowest = (await asyncio.to_thread(gateways[0].status))["gates"]["default"]["rate"]
            await eventually(lambda: rate_is(lowest + 15, 500), "it rises by 10 a second", within_s=10)


async def _until_free(redis: RedisServer, fleet: str) -> None:
    """Wait until the gateways have told that nothing is open, and the workers too."""
    granted = f"{{herdgate:{fleet}}}:granted"
    await until(lambda: redis.command("HLEN", granted) == 0, "nothing is granted")
    rooms = redis.command("KEYS", f"{{herdgate:{fleet}}}:room:*")
    held = f"{{herdgate:{fleet}}}:worker:"
    workers = [held + room.decode().partition(":room:")[2] for room in rooms]

    def are_free() -> bool:
        return all(redis.command("HGET", name, "state") == b"UP" for name in workers) and all(
            redis.command("HGET", room, "strangers") == b"0" for room in rooms
        )

    await until(are_free, "the workers have said so")
