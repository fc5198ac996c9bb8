"""The middleware in every framework the docs name, on real servers started by their own commands."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.commands import command
from tests.servers import Server
from tests.wire import Answer, ask, eventually, handshake, knock, open_socket, raw, read_close

BROWSER = [("Origin", "https://app.example")]
LIMITS = {"rate": 1, "burst": 1, "max_open": 1}

STACKS = {
    "starlette on uvicorn": ("uvicorn", "starlette:make"),
    "fastapi on uvicorn": ("uvicorn", "fastapi:make"),
    "quart on uvicorn": ("uvicorn", "quart:make"),
    "quart on hypercorn": ("hypercorn", "quart:make"),
    "litestar on uvicorn": ("uvicorn", "litestar:make"),
    "litestar on uvicorn, from inside": ("uvicorn", "litestar:make_inside"),
    "channels on uvicorn": ("uvicorn", "channels:make"),
    "channels on daphne": ("daphne", "channels:make"),
}


@pytest.fixture(
    scope="module",
    params=[pytest.param(stack, marks=pytest.mark.xdist_group(stack), id=stack) for stack in STACKS],
)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A framework on a server; no test may count on the state of its gate."""
    name, make = STACKS[request.param]
    with command(name, {"make": f"tests.framework_apps.{make}", "limits": LIMITS}) as server:
        yield server
        log = server.log()
    assert "Traceback" not in log
    assert "ERROR" not in log
    assert "1.AA" not in log, "a ticket"


async def gate(server: Server) -> dict[str, Any]:
    content: dict[str, Any] = (await ask(server.port, "/_test/gate")).json()
    return content


async def set_rate(server: Server, rate: float) -> None:
    assert (await ask(server.port, f"/_test/rate/{rate}", method="POST")).status == 200


async def is_idle(server: Server) -> None:
    async def idle() -> bool:
        snapshot = await gate(server)
        return (snapshot["pending"], snapshot["open"], snapshot["held"]) == (0, 0, 0)

    await eventually(idle, "no permit is taken")


async def use_up_tokens(server: Server) -> None:
    """From here on nobody is admitted, and there is something to promise: 1 admission in 100 s."""
    await is_idle(server)
    await set_rate(server, 0.01)

    async def denied() -> bool:
        return (await gate(server))["tokens"] < 1 or (await knock(server.port, "/ws")).status != 101

    await eventually(denied, "no token is left")
    await is_idle(server)


async def has_token(server: Server) -> bool:
    return bool((await gate(server))["tokens"] >= 1)


async def admits(server: Server, path: str = "/ws", **options: Any) -> None:
    """Wait until a handshake is admitted."""

    async def admitted() -> bool:
        return (await knock(server.port, path, **options)).status == 101

    await eventually(admitted, "admitted")


def check_denial(answer: Answer, status: int, reason: str) -> None:
    assert answer.status == status, answer
    headers, content = answer.headers, answer.json()
    assert content["reason"] == reason
    assert headers["herdgate-retry-ms"] == str(content["retry_ms"])
    assert headers["retry-after"] == str(-(-content["retry_ms"] // 1000))
    assert headers["herdgate-ticket"] == content["ticket"]
    assert headers["cache-control"] == "no-store"
    assert headers["connection"].lower() == "close"
    assert headers["content-type"] == "application/json"
    assert headers["content-length"] == str(len(answer.body))


def check_plain_no(answer: Answer) -> None:
    """All that daphne can say: it can neither answer a handshake over HTTP nor close a socket for a reason."""
    assert answer.status == 403
    assert not {"retry-after", "herdgate-retry-ms", "herdgate-ticket", "set-cookie"} & answer.headers.keys()


async def test_admitted_sockets_are_the_app_s_and_leave_no_permit(server: Server) -> None:
    await is_idle(server)
    await set_rate(server, 1_000)
    await eventually(lambda: has_token(server), "a token")
    async with open_socket(server.port, "/ws") as client:
        await client.send("hello")
        assert await client.recv() == "hello"
        assert (await gate(server))["open"] == 1
    await is_idle(server)


async def test_denied_client_gets_every_header_and_its_ticket_admits(server: Server) -> None:
    await use_up_tokens(server)
    denied = await knock(server.port, "/ws")
    if server.ws == "daphne":
        check_plain_no(denied)
        return
    check_denial(denied, 429, "rate")
    await set_rate(server, 100)  # promises come closer with it
    await admits(server, headers=[("Herdgate-Ticket", denied.headers["herdgate-ticket"])])
    await is_idle(server)


async def test_browser_reads_the_close_and_its_cookie_admits(server: Server) -> None:
    await use_up_tokens(server)
    if server.ws == "daphne":
        check_plain_no(await knock(server.port, "/ws", headers=BROWSER))
        return
    closed = await read_close(server.port, "/ws", headers=BROWSER)
    assert closed.code == 1013
    assert set(closed.json()) == {"retry_ms", "ticket", "reconnect"}
    cookie = closed.headers["set-cookie"].partition(";")[0]
    assert cookie == f"herdgate_ticket_default={closed.json()['ticket']}"
    await set_rate(server, 100)

    async def admitted() -> bool:
        before = (await gate(server))["admitted"]
        await knock(server.port, "/ws", headers=[*BROWSER, ("Cookie", cookie)])
        return bool((await gate(server))["admitted"] > before)

    await eventually(admitted, "admitted")
    await is_idle(server)


async def test_guarded_stream_holds_its_permit_until_it_ends(server: Server) -> None:
    await is_idle(server)
    await set_rate(server, 1_000)
    await eventually(lambda: has_token(server), "a token")
    async with raw(server.port, b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n") as client:
        status, headers = await client.head()
        assert status == 200
        assert headers["content-type"].startswith("text/event-stream")
        while b"tick" not in await client.read():
            pass
        assert (await gate(server))["open"] == 1
        check_denial(await ask(server.port, "/events"), 503, "full")
        refused = await knock(server.port, "/ws")
        assert refused.status == (403 if server.ws == "daphne" else 503)
        assert (await ask(server.port, "/")).status == 200
    await is_idle(server)


async def test_start_of_the_app_and_plain_pages_are_none_of_its_business(server: Server) -> None:
    await use_up_tokens(server)
    for path, text in {"/": b"page", "/started": b"yes"}.items():
        answer = await ask(server.port, path)
        assert (answer.status, answer.body.strip(b'"')) == (200, text)
    assert (await ask(server.port, "/none")).status == 404
    assert (await ask(server.port, "/events")).status == 429


async def test_page_may_ask_first_and_the_ticket_of_the_answer_admits(
    server: Server, request: pytest.FixtureRequest
) -> None:
    await use_up_tokens(server)
    answer = await ask(server.port, "/_herdgate/admission?path=/ws")
    if "from inside" in request.node.callspec.id:  # no such route there, and so no middleware
        assert answer.status == 404
        return
    assert answer.status == 429
    await set_rate(server, 100)
    await admits(server, path=f"/ws?herdgate_ticket={answer.json()['ticket']}")
    await is_idle(server)


@pytest.mark.xdist_group("channels on daphne")
async def test_daphne_refuses_with_403_even_where_close_denials_are_asked_for() -> None:
    app = {"make": "tests.framework_apps.channels:make", "limits": {"rate": 0.01}, "denial": "close"}
    with command("daphne", app) as server:
        assert (await knock(server.port, "/ws")).status == 101
        check_plain_no(await knock(server.port, "/ws"))
        check_plain_no(await knock(server.port, "/ws", headers=BROWSER))
        log = server.log()
    assert "Traceback" not in log


LOOSE = ["/ws", "/ws/", "//ws", "/ws//", "/%2Fws", "/ws%2F", "/ws%0A", "/./ws", "http://x/ws"]


async def test_no_spelling_of_a_guarded_path_gets_past_the_gate(server: Server) -> None:
    """Frameworks fold slashes, drop the last one, and more: whatever they take for the path was decided on."""
    await is_idle(server)
    await set_rate(server, 0)

    loose = [path for path in LOOSE if path.startswith("/") or server.ws != "daphne"]  # which makes an empty path of it
    statuses = {path: await status_of(server, path) for path in loose}

    await set_rate(server, 1)
    assert statuses["/ws"] in (429, 403)
    assert 101 not in statuses.values(), statuses


async def status_of(server: Server, path: str) -> int | None:
    """The answer to a handshake for exactly this target; None if the server hangs up instead."""
    async with raw(server.port, handshake(path)) as client:
        try:
            return (await client.head())[0]
        except asyncio.IncompleteReadError:
            return None
