"""What went wrong for others, replayed on uvicorn. The numbers are those of the cases."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus

from tests.board import Board, RemoteSite
from tests.servers import IMPLEMENTATIONS, Server, uvicorn
from tests.wire import ask, handshake, knock, open_socket, raw

SET_UP_S = 0.2
CLIENTS = 50


async def test_case_1_3_a_crowd_with_slow_set_ups_never_exceeds_ten_and_health_answers(board: Board) -> None:
    site = await board.site(limits={"max_pending": 10})
    refused_after: list[float] = []

    async def client() -> float:
        began = time.monotonic()
        while True:
            tried = time.monotonic()
            answer = await knock(site.port, f"{site.path}/slow?s={SET_UP_S}")
            if answer.status == 101:
                return time.monotonic() - began
            assert (answer.status, answer.json()["reason"]) == (503, "full")
            refused_after.append(time.monotonic() - tried)
            await asyncio.sleep(answer.json()["retry_ms"] / 1000)

    crowd = asyncio.gather(*(client() for _ in range(CLIENTS)))
    health = [await _health_s(site)]
    while not crowd.done():
        health.append(await _health_s(site))
        await asyncio.sleep(0.02)
    waited = await crowd
    report = await site.is_idle()
    assert report["most_setups"] == 10
    assert report["runs"] == {"slow": CLIENTS, "healthz": len(health)}
    assert report["denied"]["full"] >= CLIENTS - 10
    assert max(waited) < 20
    assert max(refused_after) < 5 * SET_UP_S, "refused early, not after waiting for others"
    assert sorted(health)[len(health) // 2] < 0.1
    assert max(health) < 1


async def _health_s(site: RemoteSite) -> float:
    began = time.monotonic()
    assert (await ask(site.port, site.path + "/healthz")).status == 200
    return time.monotonic() - began


async def test_case_2_1_over_the_limit_is_429_with_a_reason_and_not_403(board: Board, server: Server) -> None:
    site = await board.site(limits={"rate": 0.2})
    await knock(site.port, site.path + "/ws")
    answer = await knock(site.port, site.path + "/ws")
    assert (answer.status, answer.json()["reason"]) == (429, "rate")
    assert int(answer.headers["retry-after"]) in (5, 6)
    assert (await site.report())["denied"] == {"rate": 1}
    assert f'{site.path}/ws" 403' not in server.log()


@pytest.fixture(params=IMPLEMENTATIONS)
def starlette(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Starlette with pages, static files and one WebSocket route."""
    with uvicorn("tests.frameworks:starlette_app", ws=request.param, rate=0.1, burst=4) as server:
        yield server


async def test_case_2_3_upgrades_to_paths_without_websockets_are_refused_and_charged(starlette: Server) -> None:
    paths = ("/", "/healthz", "/none", "/static/frameworks.py")
    for path in paths:
        assert (await knock(starlette.port, path)).status == 403
    for path in paths:
        answer = await knock(starlette.port, path)
        assert (answer.status, answer.json()["reason"]) == (429, "rate"), "each of them was charged"
    assert (await ask(starlette.port, "/healthz")).status == 200
    log = starlette.log()
    assert "Traceback" not in log
    assert "ERROR" not in log


async def test_case_2_9_a_whole_office_behind_one_address_comes_in(board: Board) -> None:
    limits = {"client": {"open": 3}, "anonymous": {"open": 15}, "address": {"open": 130}}
    site = await board.site(limits=limits, client_key="x-user")
    people = [[("X-User", f"person-{number}")] for number in range(100)]
    sockets = await asyncio.gather(*(come(site, user) for user in people))
    sockets += [await come(site, []) for _ in range(15)]
    assert (await site.report())["open"] == 115
    await check_refused(site, [])
    sockets += [await come(site, people[0]) for _ in range(2)]
    await check_refused(site, people[0])
    sockets += [await come(site, [("X-User", f"more-{number}")]) for number in range(13)]
    await check_refused(site, [("X-User", "one too many at this address")])
    await asyncio.gather(*(client.close() for client in sockets))
    report = await site.is_idle()
    assert report["client_keys"] == 0
    assert Counter(report["denied"]) == {"client_open": 3}


async def come(site: RemoteSite, headers: list[tuple[str, str]]) -> ClientConnection:
    return await open_socket(site.port, site.path + "/ws", headers=headers)


async def check_refused(site: RemoteSite, headers: list[tuple[str, str]]) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await come(site, headers)
    assert refused.value.response.status_code == 429
    assert b'"client_open"' in refused.value.response.body


async def test_case_1_15_pre_flights_are_limited_like_handshakes(board: Board) -> None:
    site = await board.site(limits={"client": {"rate": 0.1, "burst": 5}})
    statuses = [(await ask(site.port, f"{site.path}/_herdgate/admission?path=/ws")).status for _ in range(20)]
    assert statuses == [200] * 5 + [429] * 15
    async with raw(site.port, handshake(site.path + "/ws")) as client:
        assert (await client.head())[0] == 429
