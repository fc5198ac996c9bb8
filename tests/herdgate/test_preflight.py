"""What a page is told that asks before it connects."""

import json
from typing import Any

import pytest

from herdgate import AddressRules, AdmissionMiddleware, ClientLimits, Limits
from tests.fake_server import Connection, check_idle, echo, http_scope, websocket_scope

ASK = "/_herdgate/admission"
HERE = "http://here.example"
PAGE = "https://app.example"


async def ask(
    middleware: AdmissionMiddleware, query: bytes = b"path=/ws", **changes: Any
) -> tuple[int, dict[str, str], Any]:
    scope = http_scope(changes.pop("path", ASK), query_string=query, **changes)
    start, body = (await Connection(middleware, scope).done()).sent
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    assert headers["content-length"] == str(len(body["body"]))
    assert headers["cache-control"] == "no-store"
    return start["status"], headers, json.loads(body["body"])


async def test_who_may_come_gets_a_ticket_that_admits_one_handshake() -> None:
    middleware = AdmissionMiddleware(echo, Limits(rate=1))
    status, headers, content = await ask(middleware)
    assert (status, list(content)) == (200, ["ticket"])
    assert headers["content-type"] == "application/json"
    check_idle(middleware.gate)
    for expected in ("websocket.accept", "websocket.http.response.start"):
        client = Connection(middleware, websocket_scope(headers={"Herdgate-Ticket": content["ticket"]}))
        client.event({"type": "websocket.receive", "text": "hello"})
        client.event({"type": "websocket.disconnect"})
        await client.done()
        assert client.sent[0]["type"] == expected


async def test_who_may_not_come_gets_a_denial_like_any_other() -> None:
    middleware = AdmissionMiddleware(echo, Limits(rate=1), statuses={"rate": 503})
    await ask(middleware)
    status, headers, content = await ask(middleware)
    assert (status, content["reason"]) == (503, "rate")
    assert headers["herdgate-ticket"] == content["ticket"]
    assert int(headers["retry-after"]) >= 1
    assert headers["herdgate-retry-ms"] == str(content["retry_ms"])


async def test_ticket_shown_before_its_time_is_told_again() -> None:
    middleware = AdmissionMiddleware(echo, Limits(rate=1))
    await ask(middleware)
    _, _, told = await ask(middleware)
    _, _, by_query = await ask(middleware, f"path=/ws&herdgate_ticket={told['ticket']}".encode())
    _, _, by_header = await ask(middleware, headers={"Herdgate-Ticket": told["ticket"]})
    assert told["ticket"] == by_query["ticket"] == by_header["ticket"]


async def test_without_a_rate_the_ticket_is_empty() -> None:
    status, _, content = await ask(AdmissionMiddleware(echo, Limits(rate=None)))
    assert (status, content) == (200, {"ticket": ""})


async def test_pre_flights_count_against_the_client_s_rate() -> None:
    middleware = AdmissionMiddleware(echo, Limits(rate=None, client=ClientLimits(rate=0.1, burst=3)))
    answers = [await ask(middleware) for _ in range(5)]
    assert [status for status, _, _ in answers] == [200, 200, 200, 429, 429]
    assert answers[-1][2]["reason"] == "client_rate"


@pytest.mark.parametrize(
    ("query", "status"),
    [
        (b"path=/ws", 200),
        (b"path=%2Fws", 200),
        (b"x=1&path=/ws", 200),
        (b"path=/chat/a%20b", 200),
        (b"path=/caf%C3%A9", 200),
        (b"path=/other", 404),
        (b"path=", 404),
        (b"path", 404),
        (b"", 404),
        (b"\xff=%ff&&&=", 404),
    ],
)
async def test_only_guarded_paths_can_be_asked_for(query: bytes, status: int) -> None:
    middleware = AdmissionMiddleware(echo, Limits(rate=None), websocket_paths=["/ws", "/chat/*", "/café"])
    assert (await ask(middleware, query))[0] == status


@pytest.mark.parametrize("asked", [b"path=/ws", b"path=/mounted/ws"])
async def test_path_may_be_told_from_the_mount_on_or_whole(asked: bytes) -> None:
    middleware = AdmissionMiddleware(echo, Limits(rate=None), websocket_paths=["/ws"])
    assert (await ask(middleware, asked, path=f"/mounted{ASK}", root_path="/mounted"))[0] == 200


@pytest.mark.parametrize("method", ["POST", "HEAD", "OPTIONS", "DELETE"])
async def test_other_methods_are_told_to_ask_with_get(method: str) -> None:
    middleware = AdmissionMiddleware(echo, Limits(rate=0))
    status, headers, _ = await ask(middleware, method=method)
    assert (status, headers["allow"]) == (405, "GET")
    assert middleware.gate.snapshot().denied == {}


@pytest.mark.parametrize(
    ("allowed", "origin", "shared"),
    [
        (None, HERE, True),
        (None, PAGE, False),
        ("same-host", HERE, True),
        ([PAGE], PAGE, True),
        ([PAGE], HERE, False),
        ([PAGE], "null", False),
        ([PAGE], "https://app.example.evil.example", False),
        ([PAGE], None, False),
    ],
)
@pytest.mark.parametrize("limits", [Limits(rate=None), Limits(rate=0)])
async def test_answer_is_shared_with_allowed_pages_only(
    limits: Limits, allowed: Any, origin: str | None, shared: bool
) -> None:
    middleware = AdmissionMiddleware(echo, limits, allowed_origins=allowed)
    _, headers, _ = await ask(middleware, headers={"Origin": origin} if origin else {})
    assert headers.get("access-control-allow-origin") == (origin if shared else None)
    assert headers["vary"] == "origin"


async def test_page_of_a_refused_origin_gets_no_ticket() -> None:
    middleware = AdmissionMiddleware(echo, Limits(rate=100), allowed_origins=[PAGE])
    status, _, content = await ask(middleware, headers={"Origin": HERE})
    assert (status, content["reason"], content["ticket"]) == (403, "origin", None)


async def test_exempt_client_is_told_to_come() -> None:
    rules = AddressRules(exempt_networks=["192.0.2.1"])
    status, _, content = await ask(AdmissionMiddleware(echo, Limits(rate=0), addresses=rules))
    assert (status, content) == (200, {"ticket": ""})


async def test_shadow_mode_tells_everyone_to_come_and_counts() -> None:
    middleware = AdmissionMiddleware(echo, Limits(rate=1), enforce=False)
    contents = [(status, content) for status, _, content in [await ask(middleware) for _ in range(3)]]
    assert [status for status, _ in contents] == [200, 200, 200]
    assert contents[0][1]["ticket"]
    assert contents[1:] == [(200, {"ticket": ""})] * 2
    snapshot = middleware.gate.snapshot()
    assert (snapshot.denied, snapshot.unenforced) == ({"rate": 2}, 2)
    check_idle(middleware.gate)


@pytest.mark.parametrize("path", [None, "/ask"])
async def test_path_of_the_pre_flight_is_configurable_and_may_be_off(path: str | None) -> None:
    middleware = AdmissionMiddleware(echo, Limits(rate=0), preflight_path=path)
    client = await Connection(middleware, http_scope(ASK)).done()
    assert client.sent[0]["status"] == 200, "the app's own page"
    if path:
        assert (await ask(middleware, path=path))[0] == 429
