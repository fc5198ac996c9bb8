"""What a worker tells its fleet, over a real Redis; its clients are real ones."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from uvicorn import Config, Server

from herdgate import ConfigurationError, Fleet, LoadReport
from herdgate.asgi import ASGIApp, Message, Receive, Scope, Send
from tests.redis_servers import RedisServer, redis_server
from tests.wire import eventually, open_socket

NAME = "ws://10.0.1.11:9001"
GATEWAY = "0123456789abcdef"


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


class Held:
    """An app that accepts when it may."""

    def __init__(self) -> None:
        self.may_accept = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await receive()
        await self.may_accept.wait()
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass


@asynccontextmanager
async def served(app: ASGIApp, lifespan: Any = "on") -> AsyncIterator[int]:
    """An app on uvicorn in this loop; the port."""
    server = Server(Config(app, log_config=None, ws="websockets-sansio", lifespan=lifespan))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.ensure_future(server._serve([listener]))
        await until(lambda: server.started or serving.done(), "the server starts")
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await asyncio.wait_for(serving, 10)


async def until(condition: Any, what: str, *, within_s: float = 8.0) -> None:
    async def holds() -> bool:
        return bool(condition())

    await eventually(holds, what, within_s=within_s)


def told(redis: RedisServer, name: str = NAME) -> dict[str, str]:
    """The report, without how it fares."""
    report = redis.command("HGETALL", f"{{herdgate:f}}:worker:{name}")
    return {key.decode(): value.decode() for key, value in report.items()}


def counts(redis: RedisServer) -> tuple[str | None, ...]:
    """State, pending and open, as last told."""
    report = told(redis)
    return report.get("state"), report.get("pending"), report.get("open")


async def test_sockets_are_told_as_they_come_and_go(redis: RedisServer) -> None:
    app = Held()
    report = LoadReport(app, Fleet(redis.url, "f"), name=NAME, capacity=5)
    async with served(report) as port:
        await until(lambda: counts(redis) == ("UP", "0", "0"), "an idle worker reports")
        client = asyncio.ensure_future(open_socket(port, "/").__aenter__())
        await until(lambda: counts(redis) == ("UP", "1", "0"), "it is pending")
        app.may_accept.set()
        opened = await client
        await until(lambda: counts(redis) == ("UP", "0", "1"), "it is open")
        assert told(redis)["capacity"] == "5"
        assert float(told(redis)["setup_p95_s"]) > 0
        assert 0 < redis.command("TTL", f"{{herdgate:f}}:worker:{NAME}") <= 5
        await opened.close()
        await until(lambda: counts(redis) == ("UP", "0", "0"), "it is gone")


async def test_a_client_that_leaves_during_set_up_is_counted_off(redis: RedisServer) -> None:
    app = Held()
    report = LoadReport(app, Fleet(redis.url, "f"), name=NAME)
    async with served(report) as port:
        client = asyncio.ensure_future(open_socket(port, "/").__aenter__())
        await until(lambda: counts(redis) == ("UP", "1", "0"), "it is pending")
        client.cancel()
        app.may_accept.set()
        await until(lambda: counts(redis) == ("UP", "0", "0"), "it is gone")


async def test_draining_and_full_are_told_at_once(redis: RedisServer) -> None:
    app = Held()
    app.may_accept.set()
    report = LoadReport(app, Fleet(redis.url, "f"), name=NAME, capacity=1)
    async with served(report) as port:
        await until(lambda: counts(redis)[0] == "UP", "it reports")
        report.drain()
        await until(lambda: counts(redis)[0] == "DRAINING", "it drains", within_s=0.9)
        report.resume()
        await until(lambda: counts(redis)[0] == "UP", "it is back", within_s=0.9)
        async with open_socket(port, "/"):
            await until(lambda: counts(redis)[0] == "FULL", "it is full", within_s=0.9)
        await until(lambda: counts(redis)[0] == "UP", "it has room", within_s=0.9)


async def test_a_worker_that_stops_says_that_it_drains(redis: RedisServer) -> None:
    async with served(LoadReport(Held(), Fleet(redis.url, "f"), name=NAME)):
        await until(lambda: counts(redis)[0] == "UP", "it reports")
    assert counts(redis)[0] == "DRAINING"


async def test_without_a_lifespan_it_begins_with_the_first_request(redis: RedisServer) -> None:
    app = Held()
    app.may_accept.set()
    report = LoadReport(app, Fleet(redis.url, "f"), name=NAME)
    async with served(report, "off") as port, open_socket(port, "/"):
        await until(lambda: counts(redis) == ("UP", "0", "1"), "it reports")
        await report.aclose()


async def test_reports_come_about_once_a_second(redis: RedisServer) -> None:
    async with served(LoadReport(Held(), Fleet(redis.url, "f"), name=NAME)):
        await until(lambda: told(redis), "the first")
        began, calls = time.monotonic(), redis.calls()
        await until(lambda: redis.calls() >= calls + 3, "three more")
        assert 2.5 < time.monotonic() - began < 5.5


async def test_a_blocked_loop_is_told_as_lag(redis: RedisServer) -> None:
    async with served(LoadReport(Held(), Fleet(redis.url, "f"), name=NAME)):
        await until(lambda: told(redis), "it reports")
        time.sleep(0.4)  # noqa: ASYNC251 - this is the point
        await until(lambda: float(told(redis)["lag_s"]) > 0.25, "the lag")


async def test_sockets_of_gateways_nobody_knows_take_room(redis: RedisServer) -> None:
    app = Held()
    app.may_accept.set()
    through = [("Herdgate-Gateway", GATEWAY)]
    redis.command("ZADD", "{herdgate:f}:gateways", 0, GATEWAY)
    redis.command("HSET", f"{{herdgate:f}}:gateway:{GATEWAY}", f"worker:{NAME}", 1)
    strangers = ("HGET", f"{{herdgate:f}}:room:{NAME}", "strangers")
    report = LoadReport(app, Fleet(redis.url, "f"), name=NAME)
    async with served(report) as port, open_socket(port, "/", headers=through):
        await until(lambda: counts(redis)[2] == "1", "one through a gateway")
        assert redis.command(*strangers) == b"0"
        async with open_socket(port, "/", headers=[("Herdgate-Gateway", "*")]), open_socket(port, "/"):
            await until(lambda: redis.command(*strangers) == b"2", "two past all gateways")
        redis.command("ZREM", "{herdgate:f}:gateways", GATEWAY)
        await until(lambda: counts(redis)[2] == "1" and redis.command(*strangers) == b"1", "a gateway forgotten")


@pytest.mark.parametrize("fault", ["away", "paused", "full"])
async def test_no_request_waits_or_fails_whatever_redis_does(redis: RedisServer, fault: str) -> None:
    app = Held()
    app.may_accept.set()
    async with served(LoadReport(app, Fleet(redis.url, "f"), name=NAME)) as port:
        await until(lambda: told(redis), "it reports")
        if fault == "away":
            redis.kill()
        elif fault == "paused":
            redis.pause()
        else:
            redis.command("CONFIG", "SET", "maxmemory", "1")
        end, slowest = time.monotonic() + 1.5, 0.0
        while time.monotonic() < end:
            began = time.monotonic()
            async with open_socket(port, "/"):
                slowest = max(slowest, time.monotonic() - began)
        assert slowest < 0.5
        if fault == "away":
            redis.start()
        elif fault == "paused":
            redis.resume()
        else:
            redis.command("CONFIG", "SET", "maxmemory", "0")
        redis.command("DEL", f"{{herdgate:f}}:worker:{NAME}")
        await until(lambda: counts(redis) == ("UP", "0", "0"), "it reports again", within_s=10)


async def test_lifespan_and_http_pass_untouched(redis: RedisServer) -> None:
    seen: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append((scope, await receive(), send))

    async def receive() -> Message:
        return {"type": "told"}

    async def send(message: Message) -> None:
        """Never called."""

    report = LoadReport(app, Fleet(redis.url, "f"), name=NAME)
    http, lifespan = {"type": "http", "headers": []}, {"type": "lifespan"}
    await report(http, receive, send)
    await report(lifespan, receive, send)
    assert seen == [(http, {"type": "told"}, send), (lifespan, {"type": "told"}, send)]
    await report.aclose()


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("name", {"name": ""}),
        ("name", {"name": "a b"}),
        ("name", {"name": 7}),
        ("capacity", {"capacity": -1}),
        ("capacity", {"capacity": 1.5}),
        ("fleet", {"fleet": "http://a"}),
        ("fleet", {"fleet": None}),
        ("app", {"app": None}),
    ],
)
def test_a_wrong_setting_is_named(field: str, settings: dict[str, Any]) -> None:
    given: dict[str, Any] = {"app": Held, "fleet": Fleet("redis://a"), "name": NAME, **settings}
    app, fleet = given.pop("app"), given.pop("fleet")
    with pytest.raises(ConfigurationError) as raised:
        LoadReport(app, fleet, **given)
    assert raised.value.field == field


def test_fleet_may_be_the_url_of_its_redis() -> None:
    LoadReport(Held(), "redis://a", name=NAME)


@pytest.mark.parametrize("fleet", ["redis://:hunter2@h:x", "redis://:hunter2", b"redis://:hunter2@h", ["hunter2"]])
def test_password_never_shows(fleet: Any) -> None:
    with pytest.raises(ConfigurationError) as raised:
        LoadReport(Held(), fleet, name=NAME)
    assert "hunter2" not in str(raised.value)
