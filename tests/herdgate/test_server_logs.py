"""What uvicorn's log says of denials: nothing. And what any log says of tickets: nothing either."""

import asyncio
import re
from collections.abc import Iterator

import pytest

from tests.board import Board
from tests.servers import IMPLEMENTATIONS, Server, poll, uvicorn
from tests.wire import ask, handshake, knock, open_socket, raw, read_close

DENIALS = 1_000
AT_ONCE = 50
BROWSER = [("Origin", "https://app.example")]


async def deny(port: int, head: bytes, expected: int) -> None:
    async with raw(port, head) as client:
        assert (await client.head())[0] == expected
        assert await client.read()


async def crowd(port: int, head: bytes, expected: int) -> None:
    """A thousand refusals, fifty at a time."""
    for _ in range(DENIALS // AT_ONCE):
        await asyncio.gather(*(deny(port, head, expected) for _ in range(AT_ONCE)))


@pytest.mark.parametrize("ws", IMPLEMENTATIONS)
@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (handshake("/ws"), 429),
        (handshake("/ws", headers=BROWSER), 101),
        (b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n", 429),
    ],
    ids=["http denial", "close denial", "plain http"],
)
async def test_a_thousand_denials_add_no_line_to_the_log(ws: str, head: bytes, expected: int) -> None:
    middleware = {"http_paths": ["/events"]}
    with uvicorn("tests.apps:alone", ws=ws, limits={"rate": 0}, middleware=middleware) as server:
        before = server.log()
        await crowd(server.port, head, expected)
        report = (await ask(server.port, "/report")).json()
        poll(lambda: "/report" in server.log(), "the log has caught up")
        after = server.log()
    assert report["denied"] == {"rate": DENIALS}
    assert report["pending"] == report["open"] == 0
    new = [line for line in after[len(before) :].splitlines() if "/report" not in line]
    assert [line for line in new if line != "denied arrivals: rate 1"] == []


@pytest.mark.parametrize("ws", IMPLEMENTATIONS)
async def test_admitted_arrivals_are_logged_as_ever(ws: str) -> None:
    with uvicorn("tests.apps:alone", ws=ws, limits={"rate": 100}) as server:
        assert (await knock(server.port, "/ws?room=1")).status == 101
        poll(lambda: '"WebSocket /ws?room=1" [accepted]' in server.log(), "the access line")


@pytest.mark.parametrize("ws", [*IMPLEMENTATIONS, "websockets"])
async def test_refused_and_departed_clients_are_no_errors(ws: str) -> None:
    """On the implementation that uvicorn has deprecated, too, though its library logs each refusal at INFO."""
    with uvicorn("tests.apps:switchboard", ws=ws) as server:
        site = await Board(server.port).site(limits={"rate": 4, "burst": 1}, max_wait_s=5)
        assert (await knock(site.port, site.path + "/ws")).status == 101
        told = (await knock(site.port, site.path + "/ws")).json()
        assert (await read_close(site.port, site.path + "/ws", headers=BROWSER)).code == 1013
        await asyncio.sleep(told["retry_ms"] / 1000)
        assert (await knock(site.port, site.path + "/ws")).status == 101
        shown = [("Herdgate-Ticket", told["ticket"])]
        async with raw(site.port, handshake(site.path + "/ws", headers=shown)) as client:
            await site.reaches(held=1)
            client.reset()
        await site.reaches(held=0, gone=1)
        log = server.log()
    assert "ERROR" not in log
    assert "Traceback" not in log


@pytest.fixture(scope="module", params=IMPLEMENTATIONS)
def tracing(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A switchboard that says all it can."""
    with uvicorn("tests.apps:switchboard", ws=request.param, log_level="trace") as server:
        yield server


def showing(how: str, ticket: str) -> tuple[list[tuple[str, str]], str]:
    """Headers and a query that show the ticket."""
    if how == "query":
        return [], f"?herdgate_ticket={ticket}"
    return [("Herdgate-Ticket", ticket) if how == "header" else ("Cookie", f"herdgate_ticket_default={ticket}")], ""


def check_unseen(server: Server, *tickets: str) -> None:
    """Fail if a piece of a ticket, long enough to be of no other text, is in the log."""
    poll(lambda: server.log().endswith("\n"), "whole lines")
    log = server.log()
    assert "TRACE" in log
    assert not [part for ticket in tickets for part in re.findall(".{10}", ticket) if part in log]


@pytest.mark.parametrize("shown", ["header", "query", "cookie"])
@pytest.mark.parametrize("path", ["/ws", "/page", "/unguarded"])
async def test_ticket_of_a_refused_or_unguarded_arrival_is_in_no_log(tracing: Server, shown: str, path: str) -> None:
    site = await Board(tracing.port).site(
        limits={"rate": 100, "max_open": 0}, websocket_paths=["/ws"], http_paths=["/page"]
    )
    first = (await knock(site.port, site.path + "/ws")).json()["ticket"]
    by_close = (await read_close(site.port, site.path + "/ws", headers=BROWSER)).json()["ticket"]
    told = []
    for ticket in (first, by_close):
        headers, query = showing(shown, ticket)
        come = knock if path == "/ws" else ask
        answer = await come(site.port, site.path + path + query, headers=headers)
        assert answer.status == (200 if path == "/unguarded" else 503)
        told += [] if path == "/unguarded" else [answer.json()["ticket"]]
    check_unseen(tracing, first, by_close, *told)


@pytest.mark.parametrize("shown", ["header", "query", "cookie"])
async def test_ticket_of_an_admitted_arrival_is_in_no_log(tracing: Server, shown: str) -> None:
    site = await Board(tracing.port).site(limits={"rate": 10, "burst": 1}, max_wait_s=0)
    assert (await knock(site.port, site.path + "/ws")).status == 101
    told = (await knock(site.port, site.path + "/ws")).json()
    await asyncio.sleep(told["retry_ms"] / 1000)
    headers, query = showing(shown, told["ticket"])
    async with open_socket(site.port, site.path + "/ws" + query, headers=headers) as client:
        await client.send("in")
        assert await client.recv() == "in"
    poll(lambda: tracing.log().count(f'{site.path}/ws" [accepted]') == 2, "the access line, without the query")
    check_unseen(tracing, told["ticket"])


@pytest.mark.parametrize("shown", ["header", "query"])
async def test_ticket_of_a_pre_flight_is_in_no_log(tracing: Server, shown: str) -> None:
    site = await Board(tracing.port).site(limits={"rate": 0.2})
    path = f"{site.path}/_herdgate/admission"
    given = (await ask(site.port, f"{path}?path=/ws")).json()["ticket"]
    headers, query = showing(shown, given)
    told = await ask(site.port, f"{path}{query or '?'}&path=/ws", headers=headers)
    check_unseen(tracing, given, told.json()["ticket"])
