"""What stands in front of the decision: faults are answered there and cost nothing, ids are found there."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from herdgate import Limits
from herdgate.asgi import Message, Receive, Scope, Send
from herdgate_gateway.connection_ids import ConnectionIds, in_header, in_query
from herdgate_gateway.handshake import CheckedHandshake
from tests.fake_server import Connection, http_scope, websocket_scope
from tests.herdgate_gateway.gateways import CLIENT_LEGS, Front, echo_worker, gateway, until
from tests.herdgate_gateway.handshakes import AMBIGUOUS, HANDSHAKE, WITH_BODY, request
from tests.wire import knock, open_socket, raw

pytestmark = pytest.mark.usefixtures("both_relays")

FEW = Limits(rate=0.001, burst=5)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing at ERROR, whatever a client sends."""
    yield
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def counted(front: Front) -> object:
    """All that a decision would change."""
    return front.gate.snapshot(), front.pool.snapshot()


@pytest.mark.parametrize("leg", CLIENT_LEGS)
@pytest.mark.parametrize("data", AMBIGUOUS.values(), ids=AMBIGUOUS)
async def test_case_6_12_an_ambiguous_upgrade_is_refused_and_costs_nothing(leg: str, data: bytes) -> None:
    async with echo_worker() as worker, gateway([worker.url], leg=leg, limits=FEW) as front:
        before = counted(front)
        async with raw(front.port, data) as client:
            assert (await client.answer()).status in (400, 405, 426)
        assert counted(front) == before

    assert not worker.seen


@pytest.mark.parametrize("leg", ["ours", "wsproto"])
@pytest.mark.parametrize("data", WITH_BODY.values(), ids=WITH_BODY)
async def test_case_6_12_a_handshake_with_a_body_is_refused_and_costs_nothing(leg: str, data: bytes) -> None:
    async with echo_worker() as worker, gateway([worker.url], leg=leg, limits=FEW) as front:
        before = counted(front)
        async with raw(front.port, data) as client:
            assert (await client.answer()).status == 400
        assert counted(front) == before

    assert not worker.seen


@pytest.mark.parametrize("leg", CLIENT_LEGS)
async def test_an_arrival_without_its_id_costs_nothing_and_is_told_where_it_belongs(leg: str) -> None:
    ids = ConnectionIds(in_query("id"))
    async with echo_worker() as worker, gateway([worker.url], leg=leg, limits=FEW, connection_ids=ids) as front:
        before = counted(front)
        for target in ("/ws", "/ws?id=", "/ws?id=a&id=b", f"/ws?id={'x' * 129}"):
            answer = await knock(front.port, target)
            assert answer.status == 400
            assert answer.headers["content-type"] == "text/plain"
            assert answer.body.startswith(b"a handshake has one connection id here, in the query parameter id: ")
            assert answer.body.count(b"\n") == 1
        assert counted(front) == before

    assert not worker.seen


async def test_the_worker_is_told_the_id_once_whatever_the_client_says() -> None:
    forged = [("Herdgate-Connection-Id", "forged"), ("Herdgate_Connection_Id", "forged")]
    async with (
        echo_worker() as worker,
        gateway([worker.url]) as drawing,
        gateway([worker.url], connection_ids=ConnectionIds(in_query("id"))) as asking,
        gateway([worker.url], connection_ids=ConnectionIds(in_header("Herdgate-Connection-Id"))) as named,
    ):
        for front, target, headers in (
            (asking, "/ws?id=a%2Fb", forged),
            (named, "/ws", forged[:1]),
            (drawing, "/ws", forged),
            (drawing, "/ws", []),
        ):
            async with open_socket(front.port, target, headers=headers):
                pass
        await until(lambda: len(worker.seen) == 4, "all have come")

    told = [
        [value for name, value in asked["headers"] if name.replace(b"_", b"-") == b"herdgate-connection-id"]
        for asked in worker.seen
    ]
    assert told[:2] == [[b"a/b"], [b"forged"]]
    (one,), (other,) = told[2:]
    assert one != other
    assert len(one) == len(other) == 22


async def test_a_client_that_hangs_up_behind_a_bad_handshake_is_no_error() -> None:
    async with echo_worker() as worker, gateway([worker.url], limits=FEW) as front:
        before = counted(front)
        for _ in range(20):
            async with raw(front.port, AMBIGUOUS["absolute"]) as client:
                client.reset()
        async with raw(front.port, AMBIGUOUS["absolute"]) as client:
            assert (await client.answer()).body == b"a handshake asks for a path\n"
        assert counted(front) == before


class App:
    """Takes note of what reaches it."""

    def __init__(self) -> None:
        self.seen: list[Scope] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.seen.append(scope)


def sound(**changes: Any) -> dict[str, Any]:
    scope = websocket_scope(**changes)
    return {**scope, "headers": [(name.lower().encode(), value.encode()) for name, value in HANDSHAKE.items()]}


async def answered(scope: Scope) -> list[Message]:
    app = App()
    sent = (await Connection(CheckedHandshake(app), scope).done()).sent
    assert not app.seen
    return sent


async def test_a_fault_is_answered_whole() -> None:
    scope = sound()
    scope["headers"].append((b"upgrade", b"h2c"))

    start, body = await answered(scope)

    text = b"a handshake has exactly one Upgrade: websocket\n"
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(text)), (b"connection", b"close")]
    assert start == {"type": "websocket.http.response.start", "status": 400, "headers": headers}
    assert body == {"type": "websocket.http.response.body", "body": text}


async def test_another_version_is_told_the_one_that_is_spoken() -> None:
    scope = sound()
    scope["headers"].append((b"sec-websocket-version", b"8"))

    start, _ = await answered(scope)

    assert start["status"] == 426
    assert start["headers"][-2:] == [(b"upgrade", b"websocket"), (b"sec-websocket-version", b"13")]


async def test_a_server_that_refuses_without_words_is_asked_to() -> None:
    sent = await answered(websocket_scope(extensions={}))

    assert [message["type"] for message in sent] == ["websocket.close"]


async def test_a_sound_handshake_goes_on_with_its_id_beside_what_was_there() -> None:
    app = App()
    checked = CheckedHandshake(app, ConnectionIds(in_query("id")))

    await Connection(checked, sound(query_string=b"id=abc", state={"kept": 1})).done()
    await Connection(checked, sound(query_string=b"id=def")).done()

    assert [scope["state"] for scope in app.seen] == [{"kept": 1, "connection_id": "abc"}, {"connection_id": "def"}]


async def test_what_is_no_handshake_passes_untouched() -> None:
    app = App()
    checked = CheckedHandshake(app, ConnectionIds(in_query("id")))

    for scope in (http_scope("/ws"), {"type": "lifespan"}):
        before = dict(scope)
        await Connection(checked, scope).done()
        assert app.seen[-1] is scope
        assert scope == before


async def test_the_plain_handshake_of_these_tests_is_sound() -> None:
    async with echo_worker() as worker, gateway([worker.url]) as front:
        async with raw(front.port, request()) as client:
            assert (await client.head())[0] == 101
        await front.is_idle()
