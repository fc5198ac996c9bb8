"""The middleware on a scripted server: moments and servers that a real one would not give."""

import asyncio
import random
from typing import Any

import pytest

from herdgate import AdmissionMiddleware, ClientLimits, Decision, Gate, Limits
from herdgate.asgi import Message, Receive, Scope, Send
from tests.fake_server import CONNECT, LEFT, Connection, check_idle, echo, http_scope, nothing, turns, websocket_scope

NOBODY = Limits(rate=0)
ANYBODY = Limits(rate=None)
SEED = 20_261_130


# What passes untouched


@pytest.mark.parametrize("kind", ["lifespan", "something.new"])
async def test_other_scopes_pass_with_their_own_channels(kind: str) -> None:
    seen: list[object] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend((scope, receive, send))

    async def receive() -> Message:
        raise AssertionError("read")

    async def send(message: Message) -> None:
        raise AssertionError("sent")

    scope: Scope = {"type": kind}
    await AdmissionMiddleware(app, NOBODY)(scope, receive, send)
    assert seen == [scope, receive, send]
    assert seen[0] is scope


@pytest.mark.parametrize("scope", [http_scope("/page"), websocket_scope("/open")])
async def test_unguarded_requests_pass_untouched(scope: Scope) -> None:
    middleware = AdmissionMiddleware(echo, NOBODY, websocket_paths=["/ws"])
    before = dict(scope)
    client = Connection(middleware, scope)
    client.event(LEFT)
    await client.done()
    assert client.sent[0]["type"] in ("http.response.start", "websocket.accept")
    assert scope == before
    assert middleware.gate.snapshot().denied == {}


# Servers


@pytest.mark.parametrize("extensions", [{}, None, {"tls": {}}])
@pytest.mark.parametrize("denial", ["auto", "http"])
async def test_server_without_http_denials_is_left_to_answer_403(extensions: object, denial: Any) -> None:
    middleware = AdmissionMiddleware(echo, NOBODY, denial=denial)
    client = await Connection(middleware, websocket_scope(extensions=extensions)).done()
    assert client.sent == [{"type": "websocket.close", "code": 1013}]


async def test_server_without_http_denials_still_closes_pages_with_a_reason() -> None:
    middleware = AdmissionMiddleware(echo, NOBODY)
    scope = websocket_scope(headers={"Origin": "https://app.example"})
    del scope["extensions"]
    assert (await Connection(middleware, scope).done()).types == ["accept", "close"]


async def test_scope_without_client_counts_as_local() -> None:
    decisions: list[Decision] = []
    middleware = AdmissionMiddleware(echo, NOBODY, on_decision=decisions.append)
    await Connection(middleware, websocket_scope(client=None)).done()
    scope = websocket_scope()
    del scope["client"]
    await Connection(middleware, scope).done()
    assert [decision.client for decision in decisions] == ["local", "local"]


async def test_channel_that_answers_at_once_for_ever_does_not_keep_the_loop_busy() -> None:
    reads = 0

    async def receive() -> Message:
        nonlocal reads
        reads += 1
        assert reads < 100, "the loop is kept busy"
        return CONNECT if reads == 1 else LEFT

    async def send(message: Message) -> None:
        sent.append(message["type"])

    sent: list[str] = []
    middleware = AdmissionMiddleware(echo, NOBODY)
    await asyncio.wait_for(middleware(websocket_scope(), receive, send), 5)
    assert sent == ["websocket.close"], "gone before the verdict"


@pytest.mark.parametrize(
    ("scheme", "origin", "attributes"),
    [
        ("ws", "http://here.example", ["SameSite=Lax"]),
        ("ws", "http://other.example", ["SameSite=Lax"]),
        ("wss", "https://other.example", ["SameSite=None", "Secure"]),
    ],
)
async def test_ticket_cookie_is_marked_to_travel_where_it_must(scheme: str, origin: str, attributes: list[str]) -> None:
    middleware = AdmissionMiddleware(echo, Limits(rate=100, max_open=0), websocket_paths=["/chat/*"])
    scope = websocket_scope("/chat/a", headers={"Origin": origin}, scheme=scheme)
    accept, _ = (await Connection(middleware, scope).done()).sent
    ((name, cookie),) = accept["headers"]
    assert name == b"set-cookie"
    assert cookie.decode().split("; ")[1] == "Path=/chat"
    assert cookie.decode().split("; ")[4:] == attributes


async def test_first_subprotocol_is_echoed_and_none_where_none_was_offered() -> None:
    middleware = AdmissionMiddleware(echo, NOBODY, denial="close")
    for offered, echoed in ((["b", "a"], "b"), ([], None), (None, None)):
        client = await Connection(middleware, websocket_scope(subprotocols=offered)).done()
        assert client.sent[0]["subprotocol"] == echoed


# Permits


@pytest.mark.parametrize("step", range(25))
@pytest.mark.parametrize("limits", [ANYBODY, Limits(rate=100, max_open=0), NOBODY], ids=["admit", "full", "rate"])
async def test_cancellation_at_any_moment_leaves_no_permit(limits: Limits, step: int) -> None:
    middleware = AdmissionMiddleware(echo, limits)
    client = Connection(middleware, websocket_scope())
    await turns(step)
    client.task.cancel()
    await client.ended()
    check_idle(middleware.gate)


@pytest.mark.parametrize("step", range(25))
async def test_departure_at_any_moment_leaves_no_permit(step: int) -> None:
    middleware = AdmissionMiddleware(echo, ANYBODY)
    client = Connection(middleware, websocket_scope())
    await turns(step)
    client.leave()
    await client.ended()
    check_idle(middleware.gate)
    snapshot = middleware.gate.snapshot()
    assert snapshot.admitted + snapshot.gone == 1


FATES = ("stay", "leave", "cancel", "talk")
APPS = ("echo", "raise", "raise after accept", "return", "exit", "close twice", "deny")


async def unruly(scope: Scope, receive: Receive, send: Send) -> None:
    what = scope["path"][1:]
    if what == "raise":
        raise RuntimeError("the app failed")
    if what == "return":
        return
    if what == "exit":
        raise asyncio.CancelledError
    if what == "deny":
        await send({"type": "websocket.http.response.start", "status": 404, "headers": []})
        await send({"type": "websocket.http.response.body", "body": b""})
        return
    if what == "echo":
        await echo(scope, receive, send)
        return
    await send({"type": "websocket.accept"})
    if what == "raise after accept":
        raise RuntimeError("the app failed")
    await send({"type": "websocket.close"})
    await send({"type": "websocket.close"})


async def test_permits_released_are_permits_taken_whatever_happens() -> None:
    rng = random.Random(SEED)
    limits = Limits(rate=200, burst=20, max_open=40, client=ClientLimits(open=3), address=ClientLimits(open=7))
    gate = Gate(limits, rng=rng.random)
    middleware = AdmissionMiddleware(
        unruly, gate=gate, max_wait_s=0.05, client_key=lambda scope: scope["query_string"].decode()
    )

    async def live(number: int) -> None:
        fate, app = rng.choice(FATES), rng.choice(APPS)
        client = Connection(middleware, websocket_scope(f"/{app}", query_string=b"%d" % (number % 3)))
        await turns(rng.randrange(30))
        if fate == "leave":
            client.leave()
        elif fate == "cancel":
            client.task.cancel()
        elif fate == "talk":
            client.event({"type": "websocket.receive", "text": "hello"})
        await asyncio.sleep(rng.random() / 20)
        if not client.task.done():
            client.leave()
        await client.ended()

    for _ in range(8):
        await asyncio.gather(*(live(number) for number in range(100)))
        check_idle(gate)
    snapshot = gate.snapshot()
    assert snapshot.admitted > 100, f"seed {SEED}"
    assert snapshot.gone > 10
    assert {"rate", "client_open"} <= set(snapshot.denied)


async def test_only_the_first_accept_opens_a_permit() -> None:
    gate = Gate(ANYBODY)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for _ in range(3):
            await send({"type": "websocket.accept"})
            assert (gate.snapshot().pending, gate.snapshot().open) == (0, 1)

    await Connection(AdmissionMiddleware(app, gate=gate), websocket_scope()).done()
    check_idle(gate)


async def test_refusal_by_the_app_itself_never_opens_the_permit() -> None:
    gate = Gate(ANYBODY)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.http.response.start", "status": 404, "headers": []})
        assert (gate.snapshot().pending, gate.snapshot().open) == (1, 0)
        await send({"type": "websocket.http.response.body", "body": b""})

    await Connection(AdmissionMiddleware(app, gate=gate), websocket_scope()).done()
    check_idle(gate)


@pytest.mark.parametrize("limits", [ANYBODY, NOBODY])
async def test_nothing_reads_from_a_connection_that_is_done(limits: Limits) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    before = asyncio.all_tasks()
    middleware = AdmissionMiddleware(app, limits, http_paths=["*"])
    call = asyncio.ensure_future(middleware(http_scope(), asyncio.Event().wait, nothing))  # type: ignore[arg-type]
    await asyncio.wait_for(call, 5)
    await turns(3)
    assert asyncio.all_tasks() == before


async def test_send_that_fails_in_a_refusal_reaches_the_server_as_it_is() -> None:
    middleware = AdmissionMiddleware(echo, NOBODY)

    async def send(message: Message) -> None:
        raise ConnectionResetError("the client has left")

    async def receive() -> Message:
        if events:
            return events.pop()
        await asyncio.Event().wait()
        raise AssertionError

    events = [CONNECT]
    with pytest.raises(ConnectionResetError):
        await middleware(websocket_scope(), receive, send)
    check_idle(middleware.gate)


async def test_middlewares_of_one_gate_share_its_caps() -> None:
    gate = Gate(Limits(rate=None, max_open=1))
    first, second = (AdmissionMiddleware(echo, gate=gate) for _ in range(2))
    holder = Connection(first, websocket_scope())
    await turns(20)
    refused = await Connection(second, websocket_scope()).done()
    assert refused.sent[0]["status"] == 503
    holder.leave()
    await holder.done()
    check_idle(gate)
