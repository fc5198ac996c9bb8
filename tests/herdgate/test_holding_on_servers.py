"""Handshakes held until their firm slot: one try less, and nothing lost on the way."""

import asyncio
import time
from typing import Any

import pytest

from tests.board import Board, RemoteSite
from tests.servers import Server
from tests.wire import Pairs, ask, handshake, knock, raw, read_close

LIMITS = {"rate": 4, "burst": 1}
PERIOD_S = 0.25
BROWSER = [("Origin", "https://app.example")]


async def without_token(site: RemoteSite, tickets: int = 1) -> list[Pairs]:
    """Headers that show tickets whose time has come while there is no token: each is worth a firm slot."""
    assert (await knock(site.port, site.path + "/ws")).status == 101
    told = [(await knock(site.port, site.path + "/ws")).json() for _ in range(tickets)]
    await asyncio.sleep(told[-1]["retry_ms"] / 1000)
    assert (await knock(site.port, site.path + "/ws")).status == 101
    return [[("Herdgate-Ticket", answer["ticket"])] for answer in told]


async def site_that_holds(board: Board, **middleware: Any) -> RemoteSite:
    return await board.site(limits=LIMITS, http_paths=["*"], **{"max_wait_s": 2, **middleware})


async def test_firm_slot_close_by_is_held_and_admitted_with_one_try_less(board: Board) -> None:
    site = await site_that_holds(board)
    (shown,) = await without_token(site)
    began = time.monotonic()
    assert (await knock(site.port, site.path + "/ws", headers=shown)).status == 101
    assert 0.5 * PERIOD_S < time.monotonic() - began < 8 * PERIOD_S
    report = await site.is_idle()
    assert (report["admitted"], report["denied"]) == (3, {"rate": 1})
    assert report["decisions"] == {"admitted": 3, "denied rate": 1}


async def test_held_arrival_shows_in_the_snapshot(board: Board) -> None:
    site = await site_that_holds(board)
    (shown,) = await without_token(site)
    async with raw(site.port, handshake(site.path + "/ws", headers=shown)) as client:
        report = await site.reaches(held=1, within_s=PERIOD_S)
        assert (report["pending"], report["open"]) == (0, 0)
        assert (await client.head())[0] == 101
    await site.is_idle()


@pytest.mark.parametrize(
    ("middleware", "held"), [({"max_wait_s": 0}, 0), ({"max_wait_s": 0.1}, 0), ({"max_held": 0}, 0)]
)
async def test_firm_slot_is_told_where_it_may_not_be_held(board: Board, middleware: dict[str, Any], held: int) -> None:
    site = await site_that_holds(board, **middleware)
    (shown,) = await without_token(site)
    told = (await knock(site.port, site.path + "/ws", headers=shown)).json()
    assert told["retry_ms"] > 100
    assert (await site.report())["held"] == held
    await asyncio.sleep(told["retry_ms"] / 1000)
    headers = [("Herdgate-Ticket", told["ticket"])]
    assert (await knock(site.port, site.path + "/ws", headers=headers)).status == 101


async def test_firm_slot_told_is_kept_against_newcomers_that_hammer(board: Board) -> None:
    site = await site_that_holds(board, max_wait_s=0)
    (shown,) = await without_token(site)
    told = (await knock(site.port, site.path + "/ws", headers=shown)).json()
    until = time.monotonic() + told["retry_ms"] / 1000
    while time.monotonic() < until:
        assert (await knock(site.port, site.path + "/ws")).status == 429
    headers = [("Herdgate-Ticket", told["ticket"])]
    assert (await knock(site.port, site.path + "/ws", headers=headers)).status == 101


async def test_no_more_are_held_than_allowed(board: Board) -> None:
    site = await site_that_holds(board, max_held=1)
    first, second = await without_token(site, tickets=2)
    async with raw(site.port, handshake(site.path + "/ws", headers=first)) as client:
        await site.reaches(held=1, within_s=PERIOD_S)
        refused = await knock(site.port, site.path + "/ws", headers=second)
        assert refused.status == 429
        assert (await client.head())[0] == 101


@pytest.mark.parametrize("how", ["reset", "hang up"])
@pytest.mark.parametrize("kind", ["websocket", "http"])
async def test_client_that_leaves_while_held_spends_nothing(board: Board, how: str, kind: str) -> None:
    site = await site_that_holds(board)
    (shown,) = await without_token(site)
    before = await site.is_idle()
    head = handshake(site.path + "/ws", headers=shown)
    if kind == "http":
        head = f"GET {site.path}/events HTTP/1.1\r\nHost: x\r\n{shown[0][0]}: {shown[0][1]}\r\n\r\n".encode()  # type: ignore[index]
    async with raw(site.port, head) as client:
        await site.reaches(held=1, within_s=PERIOD_S)
        if how == "reset":
            client.reset()
    after = await site.reaches(held=0, gone=1, within_s=PERIOD_S)
    await site.reaches(tokens=1, within_s=4)  # its own, back in the bucket
    assert (after["admitted"], after["runs"], after["denied"]) == (before["admitted"], before["runs"], {"rate": 1})


async def test_messages_sent_while_held_reach_the_app_in_order(board: Board, server: Server) -> None:
    early = (
        (b"1", b"2", b"3") if server.ws == "websockets-sansio" else ()
    )  # wsproto drops all that comes before its 101
    site = await site_that_holds(board)
    (shown,) = await without_token(site)
    async with raw(site.port, handshake(site.path + "/ws", headers=shown)) as client:
        await site.reaches(held=1, within_s=PERIOD_S)
        for letter in early:
            await client.send(b"\x81\x81\0\0\0\0" + letter)
        assert (await client.head())[0] == 101
        await client.send(b"\x81\x81\0\0\0\x004")
        for letter in (*early, b"4"):
            assert await client.frame() == (1, letter)


@pytest.mark.parametrize("size", [0, 1, 300_000])
async def test_body_sent_while_held_reaches_the_app_whole(board: Board, size: int) -> None:
    site = await site_that_holds(board)
    (shown,) = await without_token(site)
    ((name, ticket),) = shown
    body = bytes(number % 251 for number in range(size))
    head = f"POST {site.path}/body HTTP/1.1\r\nHost: x\r\n{name}: {ticket}\r\nContent-Length: {size}\r\n\r\n".encode()
    async with raw(site.port, head + body[: size // 3]) as client:
        await site.reaches(held=1, within_s=PERIOD_S)
        await client.send(body[size // 3 : size // 2])
        await asyncio.sleep(0.01)
        await client.send(body[size // 2 :])
        answer = await client.answer()
    assert answer.status == 200
    assert answer.body == body


async def test_gate_that_begins_to_drain_refuses_those_held(board: Board) -> None:
    site = await site_that_holds(board)
    (shown,) = await without_token(site)
    async with raw(site.port, handshake(site.path + "/ws", headers=shown)) as client:
        await site.reaches(held=1, within_s=PERIOD_S)
        await site.call("drain")
        answer = await client.answer()
    assert (answer.status, answer.json()["reason"]) == (503, "draining")


async def test_cap_reached_while_held_refuses_with_a_hint(board: Board) -> None:
    site = await board.site(limits={**LIMITS, "max_open": 1}, max_wait_s=2)
    (shown,) = await without_token(site)
    async with raw(site.port, handshake(site.path + "/ws", headers=shown)) as client:
        await site.reaches(held=1, within_s=PERIOD_S)
        await site.call("take_place")
        answer = await client.answer()
    assert (answer.status, answer.json()["reason"]) == (503, "full")
    assert answer.json()["ticket"]


async def test_rate_that_falls_while_held_is_told_instead_of_waited_for(board: Board) -> None:
    site = await site_that_holds(board)
    (shown,) = await without_token(site)
    async with raw(site.port, handshake(site.path + "/ws", headers=shown)) as client:
        await site.reaches(held=1, within_s=PERIOD_S)
        await site.call("set_rate", 0)
        answer = await client.answer()
    assert (answer.status, answer.json()["reason"]) == (429, "rate")
    assert answer.json()["ticket"]


async def test_page_held_too_long_for_its_slot_is_closed_with_it(board: Board) -> None:
    site = await site_that_holds(board, max_wait_s=0)
    (shown,) = await without_token(site)
    closed = await read_close(site.port, site.path + "/ws", headers=[*BROWSER, *shown])
    assert closed.code == 1013
    assert closed.json()["ticket"] != dict(shown)["Herdgate-Ticket"]


async def test_health_answers_while_others_are_held(board: Board) -> None:
    site = await board.site(limits=LIMITS, http_paths=["/events"], max_wait_s=2)
    (shown,) = await without_token(site)
    async with raw(site.port, handshake(site.path + "/ws", headers=shown)):
        await site.reaches(held=1, within_s=PERIOD_S)
        began = time.monotonic()
        assert (await ask(site.port, site.path + "/healthz")).status == 200
        assert time.monotonic() - began < PERIOD_S
