"""Classes and session tokens through the middleware: who is in which class, and what is given and taken out."""

import json
from http.cookies import SimpleCookie
from typing import Any

import pytest
from websockets.asyncio.client import connect

from herdgate import AdmissionClass, AdmissionMiddleware, Gate, Limits, Refused
from herdgate.asgi import Message, Receive, Scope, Send
from herdgate.core.answers import Admitted, Arrival
from herdgate.core.clients import LOCAL
from tests.at_once import at_once
from tests.fake_server import Connection, echo, http_scope, turns, websocket_scope
from tests.herdgate_gateway.gateways import serve

SECRET = "a secret for tests only, 32 bytes"
RESUMING = (AdmissionClass("resume", 0.7), AdmissionClass("normal", 0.3))


def gate_of(classes: tuple[AdmissionClass, ...] = RESUMING, rate: float | None = None) -> Gate:
    return Gate(Limits(rate=rate, burst=rate and 1, classes=classes), secrets=[SECRET])


async def accepted(middleware: AdmissionMiddleware, scope: Scope) -> Message:
    client = Connection(middleware, scope)
    while not client.sent:
        await turns(1)
    client.event({"type": "websocket.disconnect", "code": 1000})
    return (await client.done()).sent[0]


def headers(message: Message) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in message.get("headers", ())}


async def test_101_carries_a_session_token_as_header_and_cookie() -> None:
    gate = gate_of()
    told = headers(await accepted(AdmissionMiddleware(echo, gate=gate, websocket_paths=["/ws"]), websocket_scope()))
    token = told["herdgate-session"]
    assert gate.is_session_token(token)
    cookie = SimpleCookie(told["set-cookie"])["herdgate_session_default"]
    assert (cookie.value, cookie["path"], cookie["max-age"], cookie["httponly"]) == (token, "/ws", "3600", True)


async def test_headers_of_the_app_stay_beside_the_token() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept", "headers": [(b"x-app", b"1")], "subprotocol": "chat"})

    sent = (await Connection(AdmissionMiddleware(app, gate=gate_of()), websocket_scope()).done()).sent[0]
    assert headers(sent)["x-app"] == "1"
    assert sent["subprotocol"] == "chat"
    assert "herdgate-session" in headers(sent)


async def test_without_the_class_resume_no_token_is_given() -> None:
    gate = gate_of((AdmissionClass("paying", 0.7), AdmissionClass("normal", 0.3)))
    assert await accepted(AdmissionMiddleware(echo, gate=gate), websocket_scope()) == {"type": "websocket.accept"}


async def admitted_in(gate: Gate, scope: Scope, **settings: Any) -> str:
    """The class that the arrival counted in."""
    before = {name: klass.admitted for name, klass in gate.snapshot().classes.items()}
    await accepted(AdmissionMiddleware(echo, gate=gate, **settings), scope)
    after = {name: klass.admitted for name, klass in gate.snapshot().classes.items()}
    (name,) = [name for name in after if after[name] != before[name]]
    return name


def with_token(gate: Gate, where: str) -> Scope:
    token = gate.session_token()
    if where == "header":
        return websocket_scope(headers={"Herdgate-Session": f"{token}"})
    if where == "cookie":
        return websocket_scope(headers={"Cookie": f"a=1; herdgate_session_default={token}"})
    return websocket_scope(query_string=f"herdgate_session={token}".encode())


@pytest.mark.parametrize(("where", "name"), [("header", "resume"), ("cookie", "resume"), ("query", "normal")])
async def test_session_token_puts_its_holder_first_unless_it_stands_in_a_query(where: str, name: str) -> None:
    gate = gate_of()
    assert await admitted_in(gate, with_token(gate, where)) == name


@pytest.mark.parametrize("token", ["", "x", "1." + "A" * 34])
async def test_anything_else_is_no_session_token(token: str) -> None:
    assert await admitted_in(gate_of(), websocket_scope(headers={"Herdgate-Session": token})) == "normal"


async def test_client_class_decides_where_it_says_something() -> None:
    gate = gate_of((AdmissionClass("paying", 0.4), AdmissionClass("resume", 0.3), AdmissionClass("normal", 0.3)))

    def tier(scope: Scope) -> str | None:
        return dict(scope["headers"]).get(b"x-tier", b"").decode() or None

    assert await admitted_in(gate, websocket_scope(headers={"X-Tier": "paying"}), client_class=tier) == "paying"
    assert await admitted_in(gate, websocket_scope(headers={"X-Tier": "unknown"}), client_class=tier) == "normal"
    assert await admitted_in(gate, with_token(gate, "header"), client_class=tier) == "resume"
    assert await admitted_in(gate, websocket_scope(), client_class=tier) == "normal"


async def test_client_class_that_fails_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    def broken(scope: Scope) -> str:
        raise LookupError("no tier")

    middleware = AdmissionMiddleware(echo, gate=gate_of(), client_class=broken)
    for _ in range(3):
        await accepted(middleware, websocket_scope())
    assert middleware.gate.snapshot().classes["normal"].admitted == 3
    assert ["client_class failed" in record.message for record in caplog.records] == [True]


async def test_app_never_sees_a_session_token() -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)
        await echo(scope, receive, send)

    gate = gate_of()
    for where in ("header", "cookie"):
        await accepted(AdmissionMiddleware(app, gate=gate), with_token(gate, where))
    assert [scope["headers"] for scope in seen] == [
        [(b"host", b"here.example")],
        [(b"host", b"here.example"), (b"cookie", b"a=1")],
    ]


async def test_preflight_counts_in_the_class_of_who_asks() -> None:
    gate = gate_of(rate=1)
    assert isinstance(at_once(gate.decide(Arrival(LOCAL))), Admitted)
    middleware = AdmissionMiddleware(echo, gate=gate)
    scope = http_scope("/_herdgate/admission", query_string=b"path=/ws")
    scope["headers"].append((b"herdgate-session", (gate.session_token() or "").encode()))
    assert (await Connection(middleware, scope).done()).sent[0]["status"] == 429
    assert {name: klass.hints for name, klass in gate.snapshot().classes.items()} == {"resume": 1, "normal": 0}


async def test_refusal_after_admission_keeps_the_class() -> None:
    async def busy(scope: Scope, receive: Receive, send: Send) -> None:
        raise Refused("upstream")

    gate = gate_of(rate=1)
    client = await Connection(AdmissionMiddleware(busy, gate=gate), with_token(gate, "header")).done()
    assert json.loads(client.sent[1]["body"])["reason"] == "upstream"
    assert gate.snapshot().classes["resume"].hints == 1


async def test_client_that_was_in_before_is_let_in_first_on_a_real_server() -> None:
    gate = gate_of((AdmissionClass("resume", 1.0), AdmissionClass("normal", 0.0)))
    async with serve(AdmissionMiddleware(echo, gate=gate)) as port:
        async with connect(f"ws://127.0.0.1:{port}/ws") as socket:
            assert socket.response is not None
            token = socket.response.headers["Herdgate-Session"]
        async with connect(f"ws://127.0.0.1:{port}/ws", additional_headers={"Herdgate-Session": token}) as socket:
            await socket.send("hello")
            assert await socket.recv() == "hello"
    assert {name: klass.admitted for name, klass in gate.snapshot().classes.items()} == {"resume": 1, "normal": 1}
