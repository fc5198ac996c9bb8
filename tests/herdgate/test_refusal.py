"""How a refusal is sent: which messages, and how long it lingers."""

import asyncio
import logging
import time

import pytest

from herdgate.asgi import Message
from herdgate.denial import Headers
from herdgate.logs import guard_server_logs
from herdgate.refusal import (
    LINGER_S,
    close_websocket,
    let_go,
    offers_close_denial,
    offers_http_denial,
    refuse_http,
    refuse_websocket,
    reject_websocket,
)

HEADERS: Headers = [(b"retry-after", b"1")]
LEFT: Message = {"type": "websocket.disconnect", "code": 1006}


class Sent(list[Message]):
    """Keeps what is sent; the server logs a line about each."""

    async def __call__(self, message: Message) -> None:
        logging.getLogger("uvicorn.error").info("about %s", message["type"])
        self.append(message)


class Events:
    """A channel with so many events, and nothing after them."""

    def __init__(self, *types: str) -> None:
        self._types = list(types)
        self.read = 0

    async def __call__(self) -> Message:
        if self.read == len(self._types):
            await asyncio.Event().wait()
        self.read += 1
        return {"type": f"websocket.{self._types[self.read - 1]}"}


async def refuse(receive: Events) -> tuple[Sent, float]:
    sent, began = Sent(), time.monotonic()
    await refuse_websocket(receive, sent, 429, HEADERS, b"{}")
    return sent, time.monotonic() - began


async def test_http_denial_is_a_start_with_headers_and_a_body() -> None:
    sent, _ = await refuse(Events("disconnect", "disconnect"))
    assert sent == [
        {"type": "websocket.http.response.start", "status": 429, "headers": HEADERS},
        {"type": "websocket.http.response.body", "body": b"{}"},
    ]


@pytest.mark.parametrize("before", [[], ["connect"], ["connect", "receive"]])
async def test_denial_lingers_until_the_server_has_let_go_of_the_connection(before: list[str]) -> None:
    events = Events(*before, "disconnect", "disconnect")
    _, took = await refuse(events)
    assert events.read == len(before) + 2
    assert took < LINGER_S / 2


async def test_denial_lingers_a_bounded_time_only() -> None:
    _, took = await refuse(Events("connect", "disconnect"))
    assert LINGER_S * 0.9 < took < LINGER_S * 3


@pytest.mark.parametrize("kind", ["connect", "receive", "disconnect"])
async def test_channel_that_answers_at_once_for_ever_does_not_keep_the_loop_busy(kind: str) -> None:
    reads = 0

    async def receive() -> Message:
        nonlocal reads
        reads += 1
        assert reads < 100, "the loop is kept busy"
        return {"type": f"websocket.{kind}"}

    await refuse_websocket(receive, Sent(), 429, HEADERS, b"{}")
    assert reads <= 10


async def test_close_denial_accepts_with_the_cookie_then_closes_1013() -> None:
    sent = Sent()
    await close_websocket(sent, "chat", HEADERS, '{"retry_ms":1}')
    assert sent == [
        {"type": "websocket.accept", "subprotocol": "chat", "headers": HEADERS},
        {"type": "websocket.close", "code": 1013, "reason": '{"retry_ms":1}'},
    ]


async def test_plain_http_is_refused_with_the_same_content() -> None:
    sent = Sent()
    await refuse_http(sent, 503, HEADERS, b"{}")
    assert sent == [
        {"type": "http.response.start", "status": 503, "headers": HEADERS},
        {"type": "http.response.body", "body": b"{}"},
    ]


async def test_server_says_nothing_of_a_refusal_at_info(caplog: pytest.LogCaptureFixture) -> None:
    guard_server_logs()
    caplog.set_level(logging.DEBUG, logger="uvicorn.error")
    sent = Sent()
    await refuse_websocket(Events("disconnect", "disconnect"), sent, 429, HEADERS, b"{}")
    await close_websocket(sent, None, [], "{}")
    await refuse_http(sent, 429, HEADERS, b"{}")
    await reject_websocket(sent)
    await let_go(sent)
    assert len(sent) == 8
    assert caplog.messages == []
    await sent({"type": "websocket.accept"})
    assert caplog.messages == ["about websocket.accept"]


async def test_letting_go_of_a_client_that_has_left_fails_quietly() -> None:
    async def send(message: Message) -> None:
        raise OSError("the client has left")

    await let_go(send)


@pytest.mark.parametrize(
    ("extensions", "offers"),
    [
        ({"websocket.http.response": {}}, True),
        ({"websocket.http.response": {}, "tls": {}}, True),
        ({"tls": {}}, False),
        ({}, False),
        (None, False),
    ],
)
def test_extension_is_looked_for_in_the_scope(extensions: dict[str, object] | None, offers: bool) -> None:
    assert offers_http_denial({"type": "websocket", "extensions": extensions}) is offers
    assert not offers_http_denial({"type": "websocket"})


@pytest.mark.parametrize(
    ("scope", "offers"),
    [
        ({"asgi": {"version": "3.0", "spec_version": "2.4"}}, True),
        ({"asgi": {"version": "3.0", "spec_version": "2.3"}}, True),
        ({"asgi": {"version": "3.0", "spec_version": "2.2"}}, False),
        ({"asgi": {"version": "3.0"}}, False),
        ({}, False),
        ({"asgi": {"version": "3.0"}, "extensions": {"websocket.http.response": {}}}, True),
    ],
)
def test_close_denials_need_a_server_that_takes_a_reason(scope: dict[str, object], offers: bool) -> None:
    assert offers_close_denial({"type": "websocket", **scope}) is offers
