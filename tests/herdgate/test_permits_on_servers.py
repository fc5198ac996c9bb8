"""A permit is released exactly once, whatever clients and apps do: uvicorn, real sockets, both implementations."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from websockets.exceptions import InvalidStatus

from tests.board import Board, RemoteSite
from tests.wire import Raw, ask, handshake, knock, open_socket, raw

CAP_ONE = {"max_open": 1}
TIMES = 50


async def connects_again(site: RemoteSite) -> None:
    """Fail unless a client gets in within a second."""
    end = time.monotonic() + 1
    while (answer := await knock(site.port, site.path + "/ws")).status != 101:
        assert answer.json()["reason"] == "full"
        assert time.monotonic() < end, await site.report()
        await asyncio.sleep(0.01)


async def leave_after_handshake(client: Raw) -> None:
    """The verdict may be there or not."""


async def leave_in_set_up(client: Raw) -> None:
    await asyncio.sleep(0.01)


async def leave_while_streaming(client: Raw) -> None:
    assert (await client.head())[0] == 101
    assert await client.read()


async def leave_in_own_close_handshake(client: Raw) -> None:
    assert (await client.head())[0] == 101
    await client.send(b"\x88\x82\0\0\0\0\x03\xe8")  # a close frame, 1000


async def leave_in_the_app_s_close_handshake(client: Raw) -> None:
    assert (await client.head())[0] == 101
    assert (await client.frame())[0] == 8


@pytest.mark.parametrize("how", ["reset", "hang up"])
@pytest.mark.parametrize(
    ("path", "leave"),
    [
        ("/ws", leave_after_handshake),
        ("/slow?s=0.03", leave_in_set_up),
        ("/stream", leave_while_streaming),
        ("/ws", leave_in_own_close_handshake),
        ("/close", leave_in_the_app_s_close_handshake),
        ("/deaf", leave_in_own_close_handshake),
    ],
)
async def test_case_5_2_a_client_that_leaves_frees_the_only_place(
    board: Board, path: str, leave: Callable[[Raw], Awaitable[None]], how: str
) -> None:
    site = await board.site(limits=CAP_ONE)
    times = TIMES if path != "/deaf" else 5
    for _ in range(times):
        async with raw(site.port, handshake(site.path + path)) as client:
            await leave(client)
            if how == "reset":
                client.reset()
        await connects_again(site)
    report = await site.is_idle()
    assert report["running"] == 0
    assert report["client_keys"] == 0
    assert report["admitted"] + report["gone"] + report["denied"].get("full", 0) >= 2 * times


async def test_case_5_2_clients_that_leave_while_held_free_every_place(board: Board) -> None:
    site = await board.site(limits={"rate": 50, "burst": 1, "max_open": 1}, max_wait_s=10)
    answer = await knock(site.port, site.path + "/ws")
    tickets: list[str] = []
    while len(tickets) < TIMES:
        answer = await knock(site.port, site.path + "/ws")
        tickets += [answer.json()["ticket"]] if answer.status == 429 else []
        await site.is_idle()
    await asyncio.sleep(answer.json()["retry_ms"] / 1000)
    await site.call("set_rate", 5)  # ten times slower: a firm slot is 0.2 s away at least
    held = 0
    for number, ticket in enumerate(tickets):
        shown = [("Herdgate-Ticket", ticket)]
        async with raw(site.port, handshake(site.path + "/ws", headers=shown)) as client:
            while not (now := await site.report())["held"] + now["open"]:
                pass
            held += now["held"]
            if number % 2:
                client.reset()
        await site.is_idle()
    await site.call("set_rate", None)
    await connects_again(site)
    report = await site.is_idle()
    assert held >= TIMES - 5, "all but those that found a token"
    assert report["gone"] == held


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/raise-before", 500),
        ("/raise-after", 101),
        ("/return", 500),
        ("/refuse", 403),
        ("/close", 101),
        ("/close-twice", 101),
        ("/cancelled", 101),
        ("/deaf", 101),
        ("/stream", 101),
        ("/slow?s=0.01", 101),
    ],
)
async def test_app_that_ends_in_any_way_frees_the_only_place(board: Board, path: str, status: int) -> None:
    site = await board.site(limits={**CAP_ONE, "client": {"open": 1}})
    for _ in range(5):
        assert (await knock(site.port, site.path + path)).status == status
        await site.is_idle()
    report = await site.is_idle()
    assert report["admitted"] == 5
    assert report["client_keys"] == 0
    await connects_again(site)


async def test_permit_is_held_as_long_as_the_app_runs(board: Board) -> None:
    site = await board.site(limits=CAP_ONE)
    assert (await knock(site.port, site.path + "/deaf")).status == 101
    report = await site.report()
    assert (report["running"], report["open"]) in ((1, 1), (0, 0))
    while report["running"]:
        assert report["open"] == 1
        report = await site.report()
    assert (await site.is_idle())["running"] == 0


async def test_permit_is_pending_until_accept_and_open_after_it(board: Board) -> None:
    site = await board.site(limits={"max_pending": 1})
    async with raw(site.port, handshake(site.path + "/slow?s=0.3")) as client:
        await site.reaches(pending=1, open=0)
        assert (await knock(site.port, site.path + "/ws")).status == 503
        assert (await client.head())[0] == 101
        await site.reaches(pending=0, open=1)
        assert (await knock(site.port, site.path + "/ws")).status == 101
    await site.is_idle()


async def test_cap_of_three_admits_exactly_three(board: Board) -> None:
    site = await board.site(limits={"max_open": 3})
    sockets = [open_socket(site.port, site.path + "/ws") for _ in range(10)]
    results = await asyncio.gather(*sockets, return_exceptions=True)
    refused = [result for result in results if isinstance(result, InvalidStatus)]
    admitted = [result for result in results if not isinstance(result, BaseException)]
    assert (len(admitted), len(refused)) == (3, 7)
    assert (await site.report())["open"] == 3
    await asyncio.gather(*(client.close() for client in admitted))
    await site.is_idle()


async def test_plain_http_client_that_leaves_frees_the_only_place(board: Board) -> None:
    site = await board.site(limits=CAP_ONE, http_paths=["*"])
    request = f"GET {site.path}/events HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    for number in range(TIMES):
        async with raw(site.port, request) as client:
            assert (await client.head())[0] == 200
            if number % 2:
                client.reset()
        await site.is_idle()
    assert (await ask(site.port, site.path + "/page")).status == 200


@pytest.mark.parametrize("path", ["/ws", "/events"])
async def test_client_gone_before_the_verdict_is_never_admitted(board: Board, path: str) -> None:
    site = await board.site(limits={"rate": 100, "burst": 100}, http_paths=["*"])
    head = (
        handshake(site.path + path) if path == "/ws" else f"GET {site.path}{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    )
    await site.call("block", 0.5)
    await asyncio.sleep(0.1)  # until it is: all of what follows has to lie in the sockets by then
    gone = 20
    for _ in range(gone):
        async with raw(site.port, head):
            pass
    report = await site.reaches(gone=gone)
    assert (report["admitted"], report["runs"]) == (0, {})
    assert report["tokens"] == 100
