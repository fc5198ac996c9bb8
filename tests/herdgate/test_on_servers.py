"""Refusals as they reach clients: real uvicorn, real sockets, both WebSocket implementations."""

import asyncio
from typing import Any

import psutil
import pytest

from herdgate.core.answers import GateReason
from tests.board import Board, RemoteSite
from tests.refusals import EVIL, PAGE, REASONS, TICKET, check_denial, refusing_site
from tests.servers import Server
from tests.wire import ask, eventually, handshake, knock, open_socket, raw, read_close

BROWSER = [("Origin", PAGE)]


async def crowded(board: Board, **middleware: Any) -> RemoteSite:
    """A site whose only token for the next 5 s is gone."""
    site = await board.site(limits={"rate": 0.2}, **middleware)
    assert (await knock(site.port, site.path + "/ws")).status == 101
    return site


@pytest.mark.parametrize("reason", REASONS)
async def test_every_refusal_reaches_a_client_whole(board: Board, reason: GateReason) -> None:
    site, headers = await refusing_site(board, reason)
    check_denial(await knock(site.port, site.path + "/ws", headers=headers), reason)
    report = await site.is_idle()
    assert report["denied"] == {reason: 1}
    assert report["decisions"][f"denied {reason}"] == 1


@pytest.mark.parametrize("reason", REASONS)
async def test_every_refusal_reaches_plain_http_whole(board: Board, reason: GateReason) -> None:
    site, headers = await refusing_site(board, reason, http_paths=["*"])
    answer = await ask(site.port, site.path + "/page", headers=headers)
    check_denial(answer, reason)
    assert "page" not in (await site.report())["runs"]


@pytest.mark.parametrize("reason", [reason for reason in REASONS if reason != "origin"])
async def test_every_refusal_reaches_a_page_as_a_close(board: Board, reason: GateReason) -> None:
    site, _ = await refusing_site(board, reason)
    closed = await read_close(site.port, site.path + "/ws", headers=BROWSER)
    assert closed.code == 1013
    assert len(closed.reason.encode()) <= 123
    content = closed.json()
    assert content["retry_ms"] >= 1
    assert bool(content.get("ticket")) == (reason in ("draining", "full", "rate"))
    assert ("set-cookie" in closed.headers) == ("ticket" in content)
    await site.is_idle()


async def test_refused_origin_gets_http_even_from_a_page(board: Board) -> None:
    site = await board.site(limits={"rate": 100}, allowed_origins=[PAGE], denial="close")
    check_denial(await knock(site.port, site.path + "/ws", headers=[("Origin", EVIL)]), "origin")
    assert (await knock(site.port, site.path + "/ws", headers=BROWSER)).status == 101
    assert (await knock(site.port, site.path + "/ws")).status == 101


async def test_statuses_are_configurable_by_reason(board: Board) -> None:
    site, _ = await refusing_site(board, "rate", statuses={"rate": 503})
    check_denial(await knock(site.port, site.path + "/ws"), "rate", status=503)
    site, _ = await refusing_site(board, "full", statuses={"full": 429})
    check_denial(await knock(site.port, site.path + "/ws"), "full", status=429)


async def test_status_without_a_name_is_sent_too(board: Board) -> None:
    site, _ = await refusing_site(board, "rate", statuses={"rate": 599})
    assert (await knock(site.port, site.path + "/ws")).status == 599


@pytest.mark.parametrize(
    ("denial", "headers", "closes"),
    [
        ("auto", [], False),
        ("auto", BROWSER, True),
        ("http", BROWSER, False),
        ("close", [], True),
    ],
)
async def test_denial_style_decides_who_gets_a_close(
    board: Board, denial: str, headers: list[tuple[str, str]], closes: bool
) -> None:
    site = await crowded(board, denial=denial)
    answer = await knock(site.port, site.path + "/ws", headers=headers)
    assert answer.status == (101 if closes else 429)
    assert (await site.report())["denied"] == {"rate": 1}


@pytest.mark.parametrize(("offered", "echoed"), [(None, None), (["chat"], "chat"), (["b", "a", "c"], "b")])
async def test_close_denial_echoes_the_first_subprotocol(
    board: Board, offered: list[str] | None, echoed: str | None
) -> None:
    site = await crowded(board)
    closed = await read_close(site.port, site.path + "/ws", headers=BROWSER, subprotocols=offered)
    assert (closed.code, closed.subprotocol) == (1013, echoed)


async def test_close_denial_carries_the_same_ticket_in_reason_and_cookie(board: Board) -> None:
    site = await crowded(board)
    closed = await read_close(site.port, site.path + "/ws", headers=BROWSER)
    pair, *attributes = closed.headers["set-cookie"].split("; ")
    told = closed.json()
    assert pair == f"herdgate_ticket_default={told['ticket']}"
    max_age = 60 - (-told["retry_ms"] // 1000)
    assert attributes == [f"Path={site.path}/", f"Max-Age={max_age}", "HttpOnly", "SameSite=Lax"]


@pytest.mark.parametrize("shown", ["header", "query", "cookie"])
@pytest.mark.parametrize("guarded", ["websocket", "http"])
async def test_ticket_admits_once_at_its_time_however_it_is_shown(board: Board, shown: str, guarded: str) -> None:
    site = await board.site(limits={"rate": 4, "burst": 1}, http_paths=["*"], max_wait_s=0)

    async def come(ticket: str) -> int:
        headers = {"header": [("Herdgate-Ticket", ticket)], "query": []}.get(
            shown, [("Cookie", f"a=1; herdgate_ticket_default={ticket}; b=2")]
        )
        path = f"{site.path}/ws?x=1" + (f"&herdgate_ticket={ticket}" if shown == "query" else "")
        if guarded == "http":
            return (await ask(site.port, path, headers=headers)).status
        return (await knock(site.port, path, headers=headers)).status

    assert (await knock(site.port, site.path + "/ws")).status == 101
    told = (await knock(site.port, site.path + "/ws")).json()
    assert await come(told["ticket"]) == 429, "before its time"
    await asyncio.sleep(told["retry_ms"] / 1000)
    assert await come(told["ticket"]) == (101 if guarded == "websocket" else 200)
    assert await come(told["ticket"]) == 429, "a second time"
    seen = (await site.report())["seen"][-1]
    assert seen["query"] == "x=1"
    assert told["ticket"] not in str(seen)
    assert seen["headers"].get("cookie") == ("a=1; b=2" if shown == "cookie" else None)


async def test_ticket_before_its_time_is_told_again(board: Board) -> None:
    site = await crowded(board)
    first = (await knock(site.port, site.path + "/ws")).json()
    again = (await knock(site.port, site.path + "/ws", headers=[("Herdgate-Ticket", first["ticket"])])).json()
    assert again["ticket"] == first["ticket"]
    assert again["retry_ms"] <= first["retry_ms"]


@pytest.mark.parametrize("ticket", ["", "1.", "1." + "A" * 34, "\x80" * 36, "1." + "é" * 34, "x" * 4000])
async def test_forged_ticket_counts_as_none(board: Board, ticket: str) -> None:
    site = await board.site(limits={"rate": 1})
    head = handshake(site.path + "/ws", headers=[("Herdgate-Ticket", ticket)])
    for expected in (101, 429):
        async with raw(site.port, head) as client:
            assert (await client.head())[0] == expected


async def test_app_s_own_1013_is_left_alone(board: Board) -> None:
    site = await board.site(limits={"rate": 100})
    closed = await read_close(site.port, site.path + "/app-1013", headers=BROWSER)
    assert (closed.code, closed.reason) == (1013, "the app's own")
    assert "set-cookie" not in closed.headers


async def test_app_s_own_refusal_before_accept_is_left_alone(board: Board) -> None:
    site = await board.site(limits={"rate": 100})
    answer = await knock(site.port, site.path + "/refuse")
    assert (answer.status, answer.body) == (403, b"")
    await site.is_idle()


async def test_admitted_socket_works_and_ends_as_without_the_middleware(board: Board) -> None:
    site = await board.site(limits={"rate": 100})
    async with open_socket(site.port, site.path + "/ws") as client:
        for text in ("one", "two"):
            await client.send(text)
            assert await client.recv() == text
        assert (await site.report())["open"] == 1
    assert client.close_code == 1000
    await site.is_idle()


async def test_unguarded_paths_pass_while_everything_is_refused(board: Board) -> None:
    site = await board.site(limits={"rate": 0}, websocket_paths=["/ws", "/chat/*"], http_paths=["/events"])
    for path, status in {"/ws": 429, "/chat/a": 429, "/open/ws": 101, "/ws/": 429}.items():
        assert (await knock(site.port, site.path + path)).status == status, path
    for path, status in {"/events": 429, "/": 200, "/healthz": 200, "/events/": 429}.items():
        assert (await ask(site.port, site.path + path)).status == status, path
    assert (await site.report())["denied"] == {"rate": 5}


async def test_server_sent_events_stream_under_a_permit(board: Board) -> None:
    site = await board.site(limits={"rate": 100, "max_open": 1}, http_paths=["/events"])
    request = f"GET {site.path}/events HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    async with raw(site.port, request) as stream:
        status, headers = await stream.head()
        assert (status, headers["content-type"]) == (200, "text/event-stream")
        assert b"tick" in await stream.read()
        await site.reaches(open=1, pending=0)
        refused = await ask(site.port, site.path + "/events", headers=BROWSER)
        check_denial(refused, "full")
    await site.is_idle()
    async with raw(site.port, request) as stream:
        assert (await stream.head())[0] == 200


async def test_refused_client_is_not_asked_for_its_body_first(board: Board) -> None:
    site = await board.site(limits={"rate": 0}, http_paths=["*"])
    head = f"POST {site.path}/body HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    async with raw(site.port, head.encode()) as client:
        assert (await client.head())[0] == 429


async def test_shadow_mode_admits_and_counts(board: Board) -> None:
    site = await board.site(limits={"rate": 0.2}, enforce=False, allowed_origins=[PAGE])
    for headers in ([], [], BROWSER, [("Origin", EVIL)]):
        assert (await knock(site.port, site.path + "/ws", headers=headers)).status == 101
    report = await site.is_idle()
    assert report["denied"] == {"rate": 2, "origin": 1}
    assert (report["admitted"], report["unenforced"], report["runs"]) == (1, 3, {"ws": 4})


async def test_exempt_network_passes_whatever_the_limits(board: Board) -> None:
    site = await board.site(limits={"rate": 0}, addresses={"exempt_networks": ["127.0.0.2/32"]})
    assert (await knock(site.port, site.path + "/ws")).status == 429
    assert (await knock(site.port, site.path + "/ws", source="127.0.0.2")).status == 101
    report = await site.is_idle()
    assert (report["exempt"], report["admitted"], report["denied"]) == (1, 0, {"rate": 1})


async def test_exempt_key_passes_whatever_the_limits(board: Board) -> None:
    site = await board.site(limits={"rate": 0}, client_key="x-user", exempt_keys=["probe"])
    for user, status in {"probe": 101, "ip:probe": 429, "": 429}.items():
        assert (await knock(site.port, site.path + "/ws", headers=[("X-User", user)])).status == status
    assert (await site.report())["exempt"] == 1


async def test_rate_changed_live_holds_from_the_next_arrival(board: Board) -> None:
    site = await crowded(board)
    assert (await knock(site.port, site.path + "/ws")).status == 429
    await site.call("set_rate", None)
    for _ in range(3):
        assert (await knock(site.port, site.path + "/ws")).status == 101
    await site.call("set_rate", 0)
    refused = await knock(site.port, site.path + "/ws")
    assert refused.status == 429
    assert refused.json()["retry_ms"] <= 10_000
    assert (await site.report())["rate"] == 0


async def test_drain_refuses_and_keeps_sockets_then_resume_admits(board: Board) -> None:
    site = await board.site(limits={"rate": 100})
    async with open_socket(site.port, site.path + "/ws") as client:
        await site.call("drain")
        check_denial(await knock(site.port, site.path + "/ws"), "draining")
        await client.send("still here")
        assert await client.recv() == "still here"
        await site.call("resume")
        assert (await knock(site.port, site.path + "/ws")).status == 101


async def test_forwarded_address_counts_only_behind_a_trusted_proxy(board: Board) -> None:
    limits = {"client": {"open": 0}, "admit_fraction": 1.0}
    for addresses, expected in (({"trusted_proxies": ["127.0.0.0/8"]}, "exempt"), ({}, "denied client_open")):
        site = await board.site(limits=limits, addresses={**addresses, "exempt_networks": ["203.0.113.7"]})
        await knock(site.port, site.path + "/ws", headers=[("X-Forwarded-For", "198.51.100.1, 203.0.113.7")])
        assert (await site.report())["decisions"] == {expected: 1}


async def test_denied_clients_leave_nothing_open(board: Board, server: Server) -> None:
    site = await crowded(board)
    heads = [handshake(site.path + "/ws"), handshake(site.path + "/ws", headers=BROWSER)]
    for head in heads * 20:
        async with raw(site.port, head) as client:
            await client.head()
            client.reset()

    async def is_quiet() -> bool:
        return sockets_of(server.pid) <= 3

    await eventually(is_quiet, "all connections are gone")


def sockets_of(pid: int) -> int:
    """TCP sockets of a process, the listening one included."""
    return len(psutil.Process(pid).net_connections("tcp"))


async def test_pre_flight_answers_where_the_app_is_mounted(board: Board) -> None:
    site = await board.site(limits={"rate": 0.2}, websocket_paths=["/ws"])
    for asked in ("/ws", f"{site.path}/ws", "%2Fws"):
        answer = await ask(site.port, f"{site.path}/_herdgate/admission?path={asked}")
        assert answer.status in (200, 429)
        assert TICKET.fullmatch(answer.json()["ticket"])
    assert (await ask(site.port, f"{site.path}/_herdgate/admission?path=/other")).status == 404


async def test_pre_flight_ticket_admits_at_once_and_once(board: Board) -> None:
    site = await crowded(board)
    told = await ask(site.port, f"{site.path}/_herdgate/admission?path=/ws")
    check_denial(told, "rate")
    site = await board.site(limits={"rate": 1})
    ticket = (await ask(site.port, f"{site.path}/_herdgate/admission?path=/ws")).json()["ticket"]
    assert (await knock(site.port, site.path + "/ws")).status == 429, "the token is set aside"
    shown = [("Herdgate-Ticket", ticket)]
    assert (await knock(site.port, site.path + "/ws", headers=shown)).status == 101
    assert (await knock(site.port, site.path + "/ws", headers=shown)).status == 429
