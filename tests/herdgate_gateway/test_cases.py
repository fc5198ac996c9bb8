"""What went wrong for others when a crowd came, replayed on `herdgate serve`. The numbers are those of the cases."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from herdgate import Gate, Limits
from herdgate.asgi import Receive, Scope, Send
from herdgate.core.answers import Arrival, Denied
from herdgate.core.clients import AddressRules
from herdgate_gateway.settings import Settings
from tests.at_once import at_once
from tests.herdgate.core.crowds import CalendarDoor, Group, drive, obey
from tests.herdgate_gateway.admin.running import ask
from tests.herdgate_gateway.auth.stub import Stub, stub
from tests.herdgate_gateway.gateways import echo_worker, frame, serve, until
from tests.herdgate_gateway.outside import beside, counts, is_idle
from tests.herdgate_gateway.serving import Serving
from tests.wire import WAIT_S, Raw, eventually, handshake, knock, open_socket, raw

TIMES = 50
ONE = "max_open = 1\nrate = 100000"
CLOSE = frame(8, b"\x03\xe8", mask=True)


async def test_case_1_5_a_slow_service_is_asked_a_few_times_and_lets_nobody_in() -> None:
    """500 clients before a service that takes 10 s: times scaled by two, counts not."""
    clients, bound, timeout_s = 500, 20, 1.0

    async def client(port: int) -> tuple[int, str, int, float]:
        began = time.monotonic()
        async with raw(port, handshake("/ws")) as connection:
            answer = await connection.answer()
        told = answer.json()
        assert int(answer.headers["retry-after"]) == math.ceil(told["retry_ms"] / 1_000)
        return answer.status, told["reason"], told["retry_ms"], time.monotonic() - began

    async with stub() as service, echo_worker() as worker:
        service.latency_s = 10
        async with beside(asking(service, f"timeout_s = {timeout_s}, max_busy = {bound}"), worker.url) as gateway:
            answers = await asyncio.gather(*(client(gateway.port) for _ in range(clients)))
            assert Counter(answer[:2] for answer in answers) == {(503, "auth_busy"): clients}
            assert len({retry_ms for _, _, retry_ms, _ in answers}) > clients / 5, "told times of their own"
            assert 0 < service.most_busy <= bound
            assert worker.seen == [], "nobody was let in"
            assert sum(took >= timeout_s for *_, took in answers) >= bound, "no answer in time is a refusal"
            await is_idle(gateway)
            service.latency_s = 0
            await check_free(gateway, 5.0)


def asking(service: Stub, more: str) -> str:
    """Settings of a gateway that asks this service."""
    return f'rate = 500\n[[routes]]\nname = "default"\nauth = {{ url = "{service.url}", {more} }}\n'


def farthest_from_uniform(values: Sequence[float], width: float) -> float:
    """The Kolmogorov-Smirnov statistic of values against the uniform distribution over [0, width]."""
    ordered, count = sorted(values), len(values)
    places = ((place / count, (place + 1) / count, value / width) for place, value in enumerate(ordered))
    return max(max(share - low, high - share) for low, high, share in places)


def critical(count: int) -> float:
    """What the statistic exceeds once in a hundred samples that are uniform."""
    return math.sqrt(-math.log(0.01 / 2) / 2 / count)


def test_case_1_8_ten_thousand_are_told_moments_that_are_uniform_over_fifty_seconds() -> None:
    settings = Settings(rate=200, burst=1, hint_cap_s=60)
    gate = Gate(settings.route_limits(settings.routes[0]), secrets=["s" * 32], clock=lambda: 0.0, rng=lambda: 0.5)
    told: list[Any] = []
    for number in range(10_000):
        answer = at_once(gate.decide(Arrival(AddressRules().client(f"192.0.{number // 250}.{number % 250}"))))
        if isinstance(answer, Denied):
            told.append(answer.retry_s or 0.0)
    assert len(told) == len(set(told)) == 9_999, "each client is told a time of its own"
    assert math.ceil(max(told)) == 50
    assert farthest_from_uniform(told, 50) < critical(len(told))


def test_case_1_8_a_crowd_that_obeys_hints_under_their_cap_returns_uniformly_over_fifty_seconds() -> None:
    door = CalendarDoor(Limits(rate=200, burst=1), 1)
    back = drive(door, [Group(obey, 10_000, 0, 0.3)], seed=1).back
    assert len(back) == 10_000
    assert max(back.values()) == pytest.approx(50, rel=0.02)
    assert farthest_from_uniform(list(back.values()), 50) < critical(10_000)


async def test_case_1_11_half_of_the_clients_and_the_same_half_on_every_gateway() -> None:
    toml = 'rate = 100000\n[[routes]]\nname = "default"\nclient_key = { header = "x-account" }'
    accounts = [f"account-{number}" for number in range(2_000)]
    async with (
        echo_worker() as worker,
        beside(toml, worker.url) as one,
        beside(toml, worker.url) as two,
        beside(toml, worker.url) as three,
        open_socket(one.port, "/ws") as first,
        open_socket(two.port, "/ws") as second,
        open_socket(three.port, "/ws") as third,
    ):
        gateways = (one, two, three)
        began = time.monotonic()
        told = await asyncio.gather(*(asyncio.to_thread(set_fraction, gateway, 0.5) for gateway in gateways))
        assert told == [200, 200, 200]
        assert time.monotonic() - began < 2
        verdicts = [await admitted(gateway, accounts[:300]) for gateway in gateways]
        assert verdicts[0] == verdicts[1] == verdicts[2]
        share = [await admitted(gateway, accounts[number::3]) for number, gateway in enumerate(gateways)]
        assert 0.47 <= sum(map(len, share)) / len(accounts) <= 0.53
        for client in (first, second, third):
            await client.send("still here")
            assert await asyncio.wait_for(client.recv(), WAIT_S) == "still here"


def set_fraction(gateway: Serving, fraction: float) -> int:
    return ask(gateway.folder / "control", "/fraction", "POST", data={"fraction": str(fraction)}).status_code


async def admitted(gateway: Serving, accounts: Sequence[str]) -> set[str]:
    """Those who get in; the others are shed."""
    inside = set()
    for account in accounts:
        async with raw(gateway.port, handshake("/ws", headers=[("X-Account", account)])) as client:
            status, _ = await client.head()
            assert status in (101, 503)
            inside |= {account} if status == 101 else set()
    return inside


class Moody:
    """A worker that does what the path says, and echoes on any other."""

    def __init__(self) -> None:
        self.waiting = 0
        self.over = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The app."""
        await receive()
        if scope["path"] == "/mute":
            self.waiting += 1
            await receive()
            self.waiting -= 1
            return
        await send({"type": "websocket.accept"})
        await getattr(self, scope["path"].strip("/"), self.echo)(receive, send)

    async def echo(self, receive: Receive, send: Send) -> None:
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})

    async def raises(self, receive: Receive, send: Send) -> None:
        await receive()
        raise RuntimeError("the app fails in receive")

    async def deaf(self, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "websocket.disconnect":
            pass
        await self.over.wait()

    async def cancelled(self, receive: Receive, send: Send) -> None:
        await receive()
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await receive()

    async def pour(self, receive: Receive, send: Send) -> None:
        while True:
            await send({"type": "websocket.send", "text": "x" * 100})
            await asyncio.sleep(0.001)

    async def close(self, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.close", "code": 4000})


@asynccontextmanager
async def moody_worker() -> AsyncIterator[tuple[Moody, str]]:
    """The worker, and its URL."""
    moody = Moody()
    async with serve(moody, ws="websockets-sansio") as port:
        try:
            yield moody, f"ws://127.0.0.1:{port}"
        finally:
            moody.over.set()


async def check_free(gateway: Serving, within_s: float) -> None:
    """Fail unless the only place is free within that time."""

    async def gets_in() -> bool:
        async with raw(gateway.port, handshake("/ws")) as client:
            if (await client.head())[0] != 101:
                return False
            await client.send(CLOSE)
            return (await client.frame())[0] == 8

    await eventually(gets_in, "the only place is free", within_s=within_s)


async def leave_for_the_worker_to_end(client: Raw, moody: Moody) -> bool:
    if (await client.head())[0] != 101:
        return False
    await client.send(frame(1, b"go", mask=True))
    return (await client.frame())[0] == 8


async def leave_by_a_reset(client: Raw, moody: Moody) -> bool:
    if (await client.head())[0] != 101:
        return False
    client.reset()
    return True


async def leave_while_dialled(client: Raw, moody: Moody) -> bool:
    return await is_first(client, lambda: moody.waiting == 1)


async def leave_while_streaming(client: Raw, moody: Moody) -> bool:
    return (await client.head())[0] == 101 and (await client.frame())[0] == 1


async def leave_in_the_worker_s_close_handshake(client: Raw, moody: Moody) -> bool:
    return (await client.head())[0] == 101 and (await client.frame())[0] == 8


async def leave_in_own_close_handshake(client: Raw, moody: Moody) -> bool:
    if (await client.head())[0] != 101:
        return False
    await client.send(CLOSE)
    return True


async def is_first(client: Raw, condition: Callable[[], bool]) -> bool:
    """True if the condition holds before the client has an answer."""
    head = asyncio.ensure_future(client.head())
    await until(lambda: condition() or head.done(), "the handshake gets somewhere")
    return not head.done() and head.cancel()


async def leave(gateway: Serving, path: str, leaving: Callable[[Raw], Awaitable[bool]], *, reset: bool) -> None:
    """Take the only place and leave it, as soon as the client before is gone."""

    async def has_left() -> bool:
        async with raw(gateway.port, handshake(path)) as client:
            left = await leaving(client)
            if left and reset:
                client.reset()
        return left

    await eventually(has_left, "a client gets as far as it wants to")


@pytest.mark.parametrize(
    ("path", "leaving"),
    [
        ("/raises", leave_for_the_worker_to_end),
        ("/cancelled", leave_for_the_worker_to_end),
        ("/deaf", leave_in_own_close_handshake),
        ("/ws", leave_by_a_reset),
    ],
)
async def test_case_3_18_however_an_app_behind_the_gateway_ends_the_only_place_is_back(
    path: str, leaving: Callable[[Raw, Moody], Awaitable[bool]]
) -> None:
    async with moody_worker() as (moody, url), beside(ONE, url) as gateway:
        for _ in range(5):
            await leave(gateway, path, lambda client: leaving(client, moody), reset=False)
            await check_free(gateway, 2.0)
        assert "Traceback" not in gateway.log()


@pytest.mark.parametrize(
    ("path", "leaving"),
    [
        ("/mute", leave_while_dialled),
        ("/pour", leave_while_streaming),
        ("/close", leave_in_the_worker_s_close_handshake),
        ("/ws", leave_in_own_close_handshake),
    ],
)
async def test_case_5_2_a_client_that_leaves_at_the_worker_frees_the_only_place(
    path: str, leaving: Callable[[Raw, Moody], Awaitable[bool]]
) -> None:
    async with moody_worker() as (moody, url), beside(ONE, url) as gateway:
        for number in range(TIMES):
            await leave(gateway, path, lambda client: leaving(client, moody), reset=number % 2 == 1)
            await check_free(gateway, 1.0)
        assert "Traceback" not in gateway.log()


async def test_case_5_2_a_client_that_leaves_while_it_is_authenticated_frees_the_only_place() -> None:
    """Its call to the service goes on, and holds one of the many places there."""
    async with stub() as service, echo_worker() as worker:
        toml = "max_open = 1\n" + asking(service, "timeout_s = 60")
        async with beside(toml, worker.url) as gateway:
            for number in range(TIMES):
                service.latency_s = 60
                asked = is_asked(service)
                await leave(gateway, "/ws", asked, reset=number % 2 == 1)
                service.latency_s = 0
                await check_free(gateway, 1.0)


def is_asked(service: Stub) -> Callable[[Raw], Awaitable[bool]]:
    before = service.busy
    return lambda client: is_first(client, lambda: service.busy == before + 1)


async def test_case_5_2_clients_that_leave_while_they_are_held_free_the_only_place() -> None:
    toml = "rate = 50\nburst = 1\nmax_open = 1\nmax_wait_s = 60"
    async with echo_worker() as worker, beside(toml, worker.url) as gateway:
        tickets, latest_ms = await due_tickets(gateway)
        await asyncio.sleep(latest_ms / 1_000)
        set_rate(gateway, "0.5")
        await check_free(gateway, 5.0)  # so that the only token is gone
        await is_idle(gateway)
        async with asyncio.timeout(WAIT_S):
            clients = [raw(gateway.port, handshake("/ws", headers=[("Herdgate-Ticket", text)])) for text in tickets]
            entered = [await client.__aenter__() for client in clients]

        async def are_held() -> bool:
            return bool((await counts(gateway))["held"] >= TIMES - 5)

        await eventually(are_held, "all are held but those that found a token")
        for number, client in enumerate(entered):
            if number % 2:
                client.reset()
            await clients[number].__aexit__(None, None, None)

        async def are_gone() -> bool:
            return not (await counts(gateway))["held"]

        await eventually(are_gone, "nobody is held")
        set_rate(gateway, "none")
        await check_free(gateway, 1.0)
        assert (await counts(gateway))["gone"] >= TIMES - 5


def set_rate(gateway: Serving, rate: str) -> None:
    assert ask(gateway.folder / "control", "/rate", "POST", data={"rate": rate}).status_code == 200


async def due_tickets(gateway: Serving) -> tuple[list[str], int]:
    """As many hints as leave, and in how many ms the last of them is due."""
    told: list[Any] = []
    while len(told) < TIMES:
        answer = await knock(gateway.port, "/ws")
        told += [answer.json()] if answer.status == 429 else []
    return [content["ticket"] for content in told], told[-1]["retry_ms"]
