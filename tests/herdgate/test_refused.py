"""Refusing an arrival after it was admitted."""

import json
from typing import Any

import pytest

from herdgate import AdmissionMiddleware, ConfigurationError, Decision, Gate, Limits, Refused
from herdgate.asgi import Message, Receive, Scope, Send
from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.clients import LOCAL
from tests.at_once import at_once
from tests.fake_server import Connection, check_idle, http_scope, websocket_scope


def app_that_refuses(refused: Refused, after: Message | None = None) -> Any:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if after is not None:
            await send(after)
        raise refused

    return app


async def nobody(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("somebody was admitted")


async def answer(app: Any, scope: dict[str, Any]) -> list[Message]:
    return (await Connection(app, scope).done()).sent


def body(sent: list[Message]) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(sent[1]["body"])
    return content


@pytest.mark.parametrize(
    ("reason", "status", "ticket"),
    [
        ("auth", 401, False),
        ("auth_busy", 503, True),
        ("upstream", 502, True),
        ("no_owner", 503, True),
        ("draining", 503, True),
        ("full", 503, True),
    ],
)
async def test_each_reason_is_answered_as_a_denial(reason: Any, status: int, ticket: bool) -> None:
    gate = Gate(Limits(rate=10))

    sent = await answer(AdmissionMiddleware(app_that_refuses(Refused(reason)), gate=gate), websocket_scope())

    assert sent[0]["status"] == status
    assert body(sent)["reason"] == reason
    assert (body(sent)["ticket"] is not None) is ticket
    assert (body(sent)["retry_ms"] is not None) is ticket
    assert gate.snapshot().denied == {reason: 1}
    check_idle(gate)


async def test_a_status_of_its_own_takes_the_place_of_the_usual_one() -> None:
    app = AdmissionMiddleware(app_that_refuses(Refused("upstream", 504)), Limits(rate=10))

    assert (await answer(app, websocket_scope()))[0]["status"] == 504


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (Refused("auth"), [b"Bearer"]),
        (Refused("auth", 401, challenge='Basic realm="x"'), [b'Basic realm="x"']),
        (Refused("auth", 403, challenge="Basic"), []),
        (Refused("auth_busy"), []),
    ],
)
@pytest.mark.parametrize("scope", [websocket_scope(), http_scope()], ids=["handshake", "request"])
async def test_a_401_says_how_to_authenticate(refused: Refused, told: list[bytes], scope: Any) -> None:
    app = AdmissionMiddleware(app_that_refuses(refused), Limits(rate=10), http_paths=("*",))

    headers = (await answer(app, dict(scope)))[0]["headers"]

    assert [value for name, value in headers if name == b"www-authenticate"] == told


async def test_every_401_of_the_gate_says_how_to_authenticate() -> None:
    app = AdmissionMiddleware(nobody, Limits(rate=0), statuses={"rate": 401}, preflight_path="/ask")

    for scope in (websocket_scope(), http_scope("/ask", query_string=b"path=/ws")):
        sent = await answer(app, scope)
        assert sent[0]["status"] == 401
        assert (b"www-authenticate", b"Bearer") in sent[0]["headers"]


async def test_a_page_is_told_by_a_close_when_to_come_back() -> None:
    app = AdmissionMiddleware(app_that_refuses(Refused("upstream")), Limits(rate=10))

    sent = await answer(app, websocket_scope(headers={"Origin": "http://here.example"}))

    assert [message["type"] for message in sent] == ["websocket.accept", "websocket.close"]
    assert sent[1]["code"] == 1013
    assert json.loads(sent[1]["reason"])["retry_ms"] >= 1000


async def test_a_page_that_is_not_allowed_is_told_nothing() -> None:
    app = AdmissionMiddleware(app_that_refuses(Refused("auth", 403)), Limits(rate=10))

    sent = await answer(app, websocket_scope(headers={"Origin": "http://here.example"}))

    assert sent[0]["status"] == 403


async def test_a_plain_request_is_refused_alike() -> None:
    app = AdmissionMiddleware(app_that_refuses(Refused("no_owner")), Limits(rate=10), http_paths=("*",))

    sent = await answer(app, http_scope())

    assert sent[0]["status"] == 503
    assert body(sent)["reason"] == "no_owner"


async def test_what_was_answered_already_is_an_error_of_the_app() -> None:
    gate = Gate(Limits(rate=10))
    app = AdmissionMiddleware(app_that_refuses(Refused("auth"), {"type": "websocket.accept"}), gate=gate)

    with pytest.raises(Refused):
        await answer(app, websocket_scope())

    assert gate.snapshot().denied == {}
    check_idle(gate)


async def test_a_late_refusal_is_reported_after_the_admission() -> None:
    seen: list[Decision] = []
    app = AdmissionMiddleware(app_that_refuses(Refused("upstream")), Limits(rate=10), on_decision=seen.append)

    await answer(app, websocket_scope())

    assert [(decision.outcome, decision.reason) for decision in seen] == [("admitted", None), ("denied", "upstream")]


def test_nobody_having_time_to_authenticate_spends_the_token_and_promises_a_firm_slot() -> None:
    now = [0.0]
    gate = Gate(Limits(rate=1, burst=1), clock=lambda: now[0])
    assert isinstance(at_once(gate.decide(Arrival(LOCAL))), Admitted)

    denied = at_once(gate.refuse("auth_busy"))

    assert denied.firm
    assert gate.snapshot().tokens == 0
    now[0] = 1.0
    assert isinstance(at_once(gate.decide(Arrival(LOCAL))), Denied), "the next piece of refill is set aside"
    assert isinstance(at_once(gate.decide(Arrival(LOCAL, denied.ticket))), Admitted), "nobody can take a firm slot"


@pytest.mark.parametrize("rate", [1000, None])
def test_nobody_is_called_back_to_a_busy_authentication_within_a_second(rate: float | None) -> None:
    now = [0.0]
    gate = Gate(Limits(rate=rate, burst=1 if rate else None), clock=lambda: now[0])
    denials = [at_once(gate.refuse("auth_busy")) for _ in range(100)]

    told = [denied.retry_s or 0 for denied in denials]
    assert 1 <= min(told) < max(told) < 1.5
    assert len(set(told)) > 50, "not all at once"
    for denied, now[0] in sorted(zip(denials, told, strict=True), key=lambda pair: pair[1]):
        assert isinstance(at_once(gate.decide(Arrival(LOCAL, denied.ticket))), Admitted), "its slot is held that long"


def test_a_firm_slot_that_is_far_is_told_as_it_is() -> None:
    gate = Gate(Limits(rate=0.1, burst=1), clock=lambda: 0.0)
    assert at_once(gate.refuse("auth_busy")).retry_s == pytest.approx(10, abs=0.01)


def test_without_a_rate_a_late_refusal_promises_nothing() -> None:
    gate = Gate(Limits(rate=None))

    assert at_once(gate.refuse("auth_busy")).ticket is None
    assert at_once(gate.refuse("upstream")).ticket is None
    assert (at_once(gate.refuse("upstream")).retry_s or 0) >= 1


@pytest.mark.parametrize(
    ("arguments", "field"),
    [(("rate",), "reason"), (("auth", 200), "status"), (("auth", 600), "status")],
)
def test_a_wrong_refusal_is_one_line_that_names_the_field(arguments: Any, field: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{field}: got ") as caught:
        Refused(*arguments)

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("challenge", ["", "Basic\r\nSet-Cookie: a=1", "\0", "\u20ac"])
def test_a_challenge_that_no_header_can_hold_is_an_error(challenge: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^challenge: got "):
        Refused("auth", 401, challenge=challenge)
