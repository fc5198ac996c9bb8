"""What the middleware asks of the user's own functions, and what it tells them."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from herdgate import AddressRules, AdmissionMiddleware, ClientLimits, Decision, Gate, Limits
from herdgate.asgi import Message, Receive, Scope, Send
from tests.fake_server import Connection, check_idle, echo, http_scope, nothing, turns, websocket_scope

NOBODY = Limits(rate=0)
ANYBODY = Limits(rate=None)


async def test_every_decision_is_reported_once_with_what_it_was() -> None:
    decisions: list[Decision] = []
    rules = AddressRules(exempt_networks=["198.51.100.0/24"])
    gate = Gate(Limits(rate=1))
    middleware = AdmissionMiddleware(echo, gate=gate, addresses=rules, on_decision=decisions.append)
    exempt = Connection(middleware, websocket_scope(client=("198.51.100.1", 1)))
    admitted = Connection(middleware, websocket_scope("/a/ws", root_path="/a"))
    await turns(20)
    await Connection(middleware, websocket_scope()).done()
    gone = Connection(middleware, websocket_scope())
    gone.leave()
    for client in (exempt, admitted):
        client.leave()
        await client.done()
    await gone.done()
    denied = decisions.pop(2)
    assert decisions == [
        Decision("exempt", "ip:198.51.100.1", "/ws"),
        Decision("admitted", "ip:192.0.2.1", "/ws"),
        Decision("gone", "ip:192.0.2.1", "/ws"),
    ]
    assert denied.retry_s is not None
    assert denied == Decision("denied", "ip:192.0.2.1", "/ws", "rate", denied.retry_s, enforced=True)
    assert 0.5 < denied.retry_s < 1.1


async def test_shadow_mode_says_that_a_denial_was_not_enforced() -> None:
    decisions: list[Decision] = []
    middleware = AdmissionMiddleware(echo, NOBODY, enforce=False, on_decision=decisions.append, http_paths=["*"])
    client = await Connection(middleware, http_scope()).done()
    assert client.sent[0]["status"] == 200
    assert [(decision.outcome, decision.reason, decision.enforced) for decision in decisions] == [
        ("denied", "rate", False)
    ]
    assert middleware.gate.snapshot().unenforced == 1


@pytest.mark.parametrize("limits", [ANYBODY, NOBODY])
async def test_on_decision_that_raises_changes_nothing_and_is_said_once(
    limits: Limits, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(decision: Decision) -> None:
        raise ZeroDivisionError("a bug in the user's own function")

    middleware = AdmissionMiddleware(echo, limits, on_decision=fail, http_paths=["*"])
    for _ in range(3):
        client = await Connection(middleware, http_scope()).done()
        assert client.sent[0]["status"] == (200 if limits is ANYBODY else 429)
    check_idle(middleware.gate)
    errors = [record for record in caplog.records if record.name == "herdgate" and record.levelno >= logging.ERROR]
    assert len(errors) == 1
    assert "on_decision" in errors[0].message


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
@pytest.mark.parametrize("enforce", [True, False])
async def test_on_decision_that_ends_the_process_keeps_no_permit(error: type[BaseException], enforce: bool) -> None:
    def stop(decision: Decision) -> None:
        raise error

    for limits in (ANYBODY, NOBODY):
        middleware = AdmissionMiddleware(echo, limits, on_decision=stop, enforce=enforce, http_paths=["*"])
        with pytest.raises(error):
            run_alone(middleware(http_scope(), *silent()))
        check_idle(middleware.gate)


def run_alone(call: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine without a task, which would pass such errors on to the loop."""
    for _ in range(100):
        call.send(None)


def silent() -> tuple[Receive, Send]:
    """Channels on which nothing happens, of a loop of their own."""

    async def receive() -> Message:
        return {"type": "http.request"}

    return receive, nothing


async def test_better_key_has_limits_of_its_own() -> None:
    limits = Limits(rate=None, client=ClientLimits(rate=0.1, burst=1))
    middleware = AdmissionMiddleware(
        echo, limits, http_paths=["*"], client_key=lambda scope: scope["query_string"].decode() or None
    )

    async def status(user: bytes) -> object:
        return (await Connection(middleware, http_scope(query_string=user)).done()).sent[0]["status"]

    assert [await status(user) for user in (b"ann", b"bob", b"ann", b"", b"")] == [200, 200, 429, 200, 429]


@pytest.mark.parametrize(
    ("client_key", "counts_as"),
    [
        (lambda scope: "ann", "id:ann"),
        (lambda scope: None, "ip:192.0.2.1"),
        (lambda scope: "", "ip:192.0.2.1"),
        (lambda scope: 7, "ip:192.0.2.1"),
        (lambda scope: ["a", "list"], "ip:192.0.2.1"),
        (lambda scope: scope["no such thing"], "ip:192.0.2.1"),
    ],
)
async def test_client_key_without_a_good_answer_leaves_the_address(
    client_key: Callable[[Scope], Any], counts_as: str, caplog: pytest.LogCaptureFixture
) -> None:
    decisions: list[Decision] = []
    middleware = AdmissionMiddleware(
        echo, ANYBODY, http_paths=["*"], client_key=client_key, on_decision=decisions.append, exempt_keys=["probe"]
    )
    for _ in range(3):
        assert (await Connection(middleware, http_scope()).done()).sent[0]["status"] == 200
    assert {decision.client for decision in decisions} == {counts_as}
    assert len([record for record in caplog.records if record.levelno >= logging.ERROR]) <= 1
