"""`herdgate.js` in pages of a real Chromium: it obeys, and nothing but its one timer makes it dial."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route

import herdgate_client
from tests.board import Board, RemoteSite
from tests.browser.beside import run
from tests.servers import Server, poll, uvicorn
from tests.wire import knock

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("chromium")]

SCRIPT = Path(herdgate_client.__file__).parent / "js" / "herdgate.js"
START = """([url, options]) => {
    window.seen = [];
    window.socket = new HerdgateWebSocket(url, [], options);
    for (const type of ["open", "message", "retry", "error", "close"]) {
        socket.addEventListener(type, ({ delayMs, why, code, reason, data }) => {
            seen.push({ type, readyState: socket.readyState, delayMs, why, code, reason, data, at: performance.now() });
            if (type === "open") socket.send("hello");
        });
    }
}"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A switchboard that serves the page too."""
    with uvicorn("tests.apps:switchboard") as server:
        yield server


def narrow(server: Server, **settings: Any) -> RemoteSite:
    """A site with one token in 2 s."""
    return run(Board(server.port).site(limits={"rate": 0.5, "burst": 1}, max_wait_s=0, **settings))


def take_token(site: RemoteSite) -> None:
    """Nobody comes in for the next 2 s."""
    assert run(knock(site.port, site.path + "/ws")).status == 101


def open_page(context: BrowserContext, site: RemoteSite, host: str = "127.0.0.1") -> Page:
    page = context.new_page()
    page.goto(f"http://{host}:{site.port}{site.path}/page")
    page.add_script_tag(path=SCRIPT)
    return page


def start(page: Page, site: RemoteSite, **options: Any) -> None:
    page.evaluate(START, [f"ws://127.0.0.1:{site.port}{site.path}/ws", options])


def seen(page: Page, kind: str | None = None) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = page.evaluate("seen")
    return [event for event in events if kind in (None, event["type"])]


def wait_for(page: Page, kind: str, count: int = 1) -> list[dict[str, Any]]:
    page.wait_for_function(f"seen.filter(({{ type }}) => type === '{kind}').length >= {count}", polling=20)
    return seen(page, kind)


def arrivals(site: RemoteSite) -> int:
    """Decisions so far, the one that took the token included."""
    report = run(site.report())
    return int(report["admitted"] + sum(report["denied"].values()))


@pytest.mark.parametrize(("host", "in_query"), [("127.0.0.1", True), ("127.0.0.1", False), ("localhost", True)])
def test_page_obeys_a_close_denial_and_comes_in_with_its_ticket(
    server: Server, context: BrowserContext, host: str, in_query: bool
) -> None:
    site = narrow(server)
    page = open_page(context, site, host)
    take_token(site)
    start(page, site, ticketInQuery=in_query)
    (message,) = wait_for(page, "message")
    assert message["data"] == "hello"
    retries = seen(page, "retry")
    assert 1 <= len(retries) <= 2
    for retry in retries:
        assert (retry["code"], retry["readyState"]) == (1013, 0)
        assert retry["delayMs"] == json.loads(retry["reason"])["retry_ms"]
    opened = seen(page, "open")
    assert all(there["at"] - retry["at"] >= retry["delayMs"] for retry, there in zip(retries, opened[1:], strict=True))
    report = run(site.report())
    assert (report["admitted"], report["denied"]) == (2, {"rate": len(retries)})
    assert report["seen"][-1]["query"] == ""


def test_page_that_sees_1006_asks_and_comes_in(server: Server, context: BrowserContext) -> None:
    site = narrow(server, denial="http")
    page = open_page(context, site)
    take_token(site)
    start(page, site, preflight=f"{site.path}/_herdgate/admission", baseMs=150)
    wait_for(page, "message")
    mute, told, *_ = seen(page, "retry")
    assert (mute["code"], mute["delayMs"] <= 150) == (1006, True)
    assert told["why"] == "HTTP 429 rate"
    assert 0 < told["delayMs"] <= 4100


def test_going_off_and_on_line_or_out_of_sight_makes_no_second_dial(server: Server, context: BrowserContext) -> None:
    site = run(Board(server.port).site(limits={"rate": 0.1, "burst": 1}))
    page = open_page(context, site)
    take_token(site)
    start(page, site)
    (retry,) = wait_for(page, "retry")
    assert retry["delayMs"] > 5000
    for _ in range(5):
        context.set_offline(True)
        context.set_offline(False)
        page.evaluate("() => ['online', 'focus', 'pageshow'].forEach(type => dispatchEvent(new Event(type)))")
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    context.new_page().bring_to_front()
    page.bring_to_front()
    assert page.evaluate("performance.now()") < retry["at"] + retry["delayMs"], "too slow to tell"
    assert len(seen(page, "retry")) == 1
    assert arrivals(site) == 2


def test_lost_socket_is_back_without_the_page_doing_anything(server: Server, context: BrowserContext) -> None:
    site = run(Board(server.port).site(limits={"rate": 100}))
    page = open_page(context, site)
    page.evaluate("window.real = WebSocket; window.made = []")
    page.evaluate(
        "() => { window.WebSocket = class extends real { constructor(...all) { super(...all); made.push(this); } } }"
    )
    start(page, site)
    wait_for(page, "message")
    page.evaluate("made[0].close(4000)")
    wait_for(page, "message", 2)
    kinds = [event["type"] for event in seen(page)]
    assert kinds == ["open", "message", "retry", "open", "message"]
    page.evaluate("socket.close(1000, 'bye')")
    (closed,) = wait_for(page, "close")
    assert (closed["code"], closed["readyState"]) == (1000, 3)
    assert page.evaluate("made.length") == 2
    poll(lambda: run(site.report())["open"] == 0, "all are closed")


def test_it_is_used_as_a_websocket_is(server: Server, context: BrowserContext) -> None:
    site = run(Board(server.port).site(limits={"rate": 100}))
    page = open_page(context, site)
    found = page.evaluate(
        """url => new Promise(resolve => {
            const socket = new HerdgateWebSocket(url);
            const { readyState, protocol, bufferedAmount, binaryType } = socket;
            const early = [readyState, protocol, bufferedAmount, binaryType, socket.url === url];
            try { socket.send("early"); } catch (error) { early.push(error.name); }
            try { socket.close(1001); } catch (error) { early.push(error.name); }
            try { socket.close(1000, "x".repeat(124)); } catch (error) { early.push(error.name); }
            socket.binaryType = "arraybuffer";
            socket.onopen = () => socket.send("hello");
            socket.onmessage = ({ data }) => { early.push(data, socket.binaryType); socket.close(); };
            socket.onclose = ({ code, wasClean }) => {
                socket.send("dropped, as a WebSocket does");
                resolve([...early, code, wasClean, socket.readyState === HerdgateWebSocket.CLOSED, socket.OPEN]);
            };
        })""",
        f"ws://127.0.0.1:{site.port}{site.path}/ws",
    )
    early = [0, "", 0, "blob", True, "InvalidStateError", "InvalidAccessError", "SyntaxError"]
    assert found == [*early, "hello", "arraybuffer", 1005, True, True, 1]


def test_module_imports_it_too(server: Server, context: BrowserContext) -> None:
    def give(route: Route) -> None:
        route.fulfill(path=SCRIPT, content_type="text/javascript")

    site = run(Board(server.port).site(limits={"rate": 100}))
    page = context.new_page()
    page.route("**/herdgate.js", give)
    page.goto(f"http://127.0.0.1:{site.port}{site.path}/page")
    page.add_script_tag(
        type="module", content='import "/herdgate.js"; window.found = typeof globalThis.HerdgateWebSocket;'
    )
    page.wait_for_function("window.found === 'function'")
    assert page.evaluate("new HerdgateWebSocket('/x', [], { WebSocket: class extends EventTarget {} }).url").endswith(
        "/x"
    )
