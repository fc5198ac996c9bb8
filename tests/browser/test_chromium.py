"""What a page in a real Chromium can read of a denial, and whether its ticket brings it in."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.board import Board, RemoteSite
from tests.browser.beside import run
from tests.refusals import TICKET
from tests.servers import IMPLEMENTATIONS, Server, uvicorn
from tests.wire import knock

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("chromium")]

CONNECT = """([url, protocols]) => new Promise(resolve => {
    const seen = {opened: false, echoed: null};
    const socket = protocols === null ? new WebSocket(url) : new WebSocket(url, protocols);
    socket.onopen = () => { seen.opened = true; seen.protocol = socket.protocol; socket.send("hello"); };
    socket.onmessage = event => { seen.echoed = event.data; socket.close(1000); };
    socket.onclose = event => resolve({...seen, code: event.code, reason: event.reason, clean: event.wasClean});
})"""

FETCH = """url => fetch(url).then(
    async answer => ({status: answer.status, content: await answer.json()}),
    error => ({status: null, content: String(error)}),
)"""


@pytest.fixture(scope="module", params=IMPLEMENTATIONS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A switchboard that serves the page too."""
    with uvicorn("tests.apps:switchboard", ws=request.param) as server:
        yield server


def site_of(server: Server, **settings: Any) -> RemoteSite:
    return run(Board(server.port).site(**settings))


def open_page(context: BrowserContext, site: RemoteSite, host: str = "127.0.0.1") -> Page:
    page = context.new_page()
    answer = page.goto(f"http://{host}:{site.port}{site.path}/page")
    assert answer is not None
    assert answer.ok
    return page


def take_token(site: RemoteSite) -> None:
    """A newcomer takes the token that is there, so that only a ticket helps."""
    assert run(knock(site.port, site.path + "/ws")).status == 101


def crowded(
    server: Server, context: BrowserContext, host: str = "127.0.0.1", **settings: Any
) -> tuple[RemoteSite, Page]:
    """A site whose only token for the next 2 s is gone, and its page, which took its time to open."""
    site = site_of(server, limits={"rate": 0.5, "burst": 1}, **settings)
    page = open_page(context, site, host)
    take_token(site)
    return site, page


def connect(page: Page, site: RemoteSite, query: str = "", protocols: str | list[str] | None = None) -> dict[str, Any]:
    url = f"ws://127.0.0.1:{site.port}{site.path}/ws{query}"
    seen: dict[str, Any] = page.evaluate(CONNECT, [url, protocols])
    return seen


def check_close(seen: dict[str, Any]) -> dict[str, Any]:
    assert (seen["opened"], seen["code"], seen["echoed"], seen["clean"]) == (True, 1013, None, True)
    told: dict[str, Any] = json.loads(seen["reason"])
    assert told["retry_ms"] >= 1
    assert TICKET.fullmatch(told["ticket"])
    return told


@pytest.mark.parametrize(
    ("offered", "echoed"), [(None, ""), ("chat", "chat"), (["chat"], "chat"), (["v2.chat", "v1.chat", "x"], "v2.chat")]
)
def test_page_reads_code_and_reason(
    server: Server, context: BrowserContext, offered: str | list[str] | None, echoed: str
) -> None:
    site, page = crowded(server, context)
    seen = connect(page, site, protocols=offered)
    check_close(seen)
    assert seen["protocol"] == echoed


def test_page_is_admitted_where_there_is_room(server: Server, context: BrowserContext) -> None:
    site = site_of(server, limits={"rate": 100})
    seen = connect(open_page(context, site), site)
    assert (seen["opened"], seen["echoed"], seen["code"]) == (True, "hello", 1000)
    assert context.cookies() == []


def test_page_shows_its_ticket_with_the_next_handshake_and_is_admitted_at_its_slot(
    server: Server, context: BrowserContext
) -> None:
    site, page = crowded(server, context, max_wait_s=5)
    told = check_close(connect(page, site))
    (cookie,) = context.cookies()
    assert (cookie["name"], cookie["value"]) == ("herdgate_ticket_default", told["ticket"])
    assert (cookie["path"], cookie["httpOnly"], cookie["sameSite"]) == (f"{site.path}/", True, "Lax")
    assert page.evaluate("document.cookie") == ""
    page.wait_for_timeout(told["retry_ms"])
    take_token(site)
    seen = connect(page, site)  # no token, but a ticket: held for its firm slot
    assert (seen["opened"], seen["echoed"], seen["code"]) == (True, "hello", 1000)
    report = run(site.is_idle())
    assert (report["admitted"], report["denied"]) == (3, {"rate": 1})
    assert "cookie" not in report["seen"][-1]["headers"]


def test_page_that_comes_too_early_is_told_the_same_ticket_again(server: Server, context: BrowserContext) -> None:
    site, page = crowded(server, context)
    first, second = (check_close(connect(page, site)) for _ in range(2))
    assert second["ticket"] == first["ticket"]
    assert second["retry_ms"] <= first["retry_ms"]


def test_page_of_another_site_reads_the_reason_and_comes_back_with_the_ticket_in_its_query(
    server: Server, context: BrowserContext
) -> None:
    site, page = crowded(server, context, "localhost", max_wait_s=5)
    told = check_close(connect(page, site))
    assert context.cookies() == [], "a cookie of another site is not kept without TLS"
    page.wait_for_timeout(told["retry_ms"])
    take_token(site)
    seen = connect(page, site, f"?herdgate_ticket={told['ticket']}")
    assert (seen["opened"], seen["echoed"]) == (True, "hello")


def test_page_of_a_refused_origin_learns_nothing(server: Server, context: BrowserContext) -> None:
    site = site_of(server, limits={"rate": 100}, allowed_origins=[f"http://127.0.0.1:{server.port}"])
    seen = connect(open_page(context, site, "localhost"), site)
    assert (seen["opened"], seen["code"], seen["reason"]) == (False, 1006, "")
    seen = connect(open_page(context, site), site)
    assert (seen["opened"], seen["code"]) == (True, 1000)
    assert run(site.is_idle())["denied"] == {"origin": 1}


def test_same_host_rule_knows_pages_of_its_own_host(server: Server, context: BrowserContext) -> None:
    site = site_of(server, limits={"rate": 100}, allowed_origins="same-host")
    assert connect(open_page(context, site), site)["code"] == 1000
    assert connect(open_page(context, site, "localhost"), site)["code"] == 1006


def test_http_denial_shows_a_page_nothing_but_1006(server: Server, context: BrowserContext) -> None:
    site, page = crowded(server, context, denial="http")
    seen = connect(page, site)
    assert (seen["opened"], seen["code"], seen["reason"]) == (False, 1006, "")


def test_draining_gate_closes_pages_with_a_reason(server: Server, context: BrowserContext) -> None:
    site = site_of(server, limits={"rate": 100})
    run(site.call("drain"))
    check_close(connect(open_page(context, site), site))


def test_page_asks_before_it_connects(server: Server, context: BrowserContext) -> None:
    site = site_of(server, limits={"rate": 0.5, "burst": 1})
    page = open_page(context, site)
    url = f"{site.path}/_herdgate/admission?path={site.path}/ws"
    may = page.evaluate(FETCH, url)
    assert (may["status"], list(may["content"])) == (200, ["ticket"])
    may_not = page.evaluate(FETCH, url)
    assert (may_not["status"], may_not["content"]["reason"]) == (429, "rate")
    assert may_not["content"]["retry_ms"] >= 1
    seen = connect(page, site, f"?herdgate_ticket={may['content']['ticket']}")
    assert (seen["opened"], seen["echoed"]) == (True, "hello")


@pytest.mark.parametrize(("allowed", "status"), [(True, 200), (False, None)])
def test_page_of_another_origin_reads_a_pre_flight_only_where_allowed(
    server: Server, context: BrowserContext, allowed: bool, status: int | None
) -> None:
    origin = f"http://localhost:{server.port}" if allowed else "https://app.example"
    site = site_of(server, limits={"rate": 0.5, "burst": 1}, allowed_origins=[origin])
    page = open_page(context, site, "localhost")
    url = f"http://127.0.0.1:{site.port}{site.path}/_herdgate/admission?path=/ws"
    answers = [page.evaluate(FETCH, url) for _ in range(2)]
    assert answers[0]["status"] == status
    assert answers[1]["status"] == (429 if allowed else None)
    assert ("retry_ms" in answers[1]["content"]) is allowed
