"""What a worker's 101 may say, and what the client gets to see of it."""

import pytest
from websockets.datastructures import Headers
from websockets.http11 import Response
from websockets.utils import accept_key

from herdgate_gateway.splice.handshake import Handshake, client_head, has_extension
from tests.herdgate_gateway.handshakes import KEY, request
from tests.herdgate_gateway.splice.fronts import scope_of

DEFLATE = ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits")
CHAT = ("Sec-WebSocket-Protocol", "chat, superchat")
HOST = [("host", "localhost")]
SOUND = {"Upgrade": "WebSocket", "Connection": "keep-alive, upgrade", "Sec-WebSocket-Accept": accept_key(KEY)}


def answer(*more: tuple[str, str], drop: str = "") -> Response:
    return Response(101, "x", Headers([*(pair for pair in SOUND.items() if pair[0] != drop), *more]))


def asked(*offers: tuple[str, str]) -> Handshake:
    return Handshake(scope_of(request(add=offers)), HOST)


@pytest.mark.parametrize(
    ("offers", "chosen"),
    [
        ([], []),
        ([CHAT, DEFLATE], []),
        ([CHAT], [("Sec-WebSocket-Protocol", "superchat")]),
        ([CHAT, ("Sec-WebSocket-Protocol", "third")], [("Sec-WebSocket-Protocol", "third")]),
        ([DEFLATE], [("Sec-WebSocket-Extensions", "permessage-deflate; server_no_context_takeover")]),
        ([("Sec-WebSocket-Extensions", "a, b; x=1")], [("Sec-WebSocket-Extensions", "b")]),
    ],
)
def test_a_worker_may_choose_from_what_was_offered(
    offers: list[tuple[str, str]], chosen: list[tuple[str, str]]
) -> None:
    response = answer(*chosen)

    assert asked(*offers).fault(response) is None
    assert has_extension(response) is any(name == "Sec-WebSocket-Extensions" for name, _ in chosen)


@pytest.mark.parametrize(
    ("offers", "response"),
    [
        ([], answer(drop="Upgrade")),
        ([], answer(drop="Connection")),
        ([], answer(drop="Sec-WebSocket-Accept")),
        ([], answer(("Upgrade", "h2c"))),
        ([], answer(("Connection", "close"), drop="Connection")),
        ([], answer(("Connection", "@"))),
        ([], answer(("Sec-WebSocket-Accept", accept_key("other")), drop="Sec-WebSocket-Accept")),
        ([], answer(("Sec-WebSocket-Accept", accept_key(KEY)))),
        ([], answer(("Sec-WebSocket-Protocol", "chat"))),
        ([], answer(("Sec-WebSocket-Protocol", ""))),
        ([CHAT], answer(("Sec-WebSocket-Protocol", "chat"), ("Sec-WebSocket-Protocol", "superchat"))),
        ([CHAT], answer(("Sec-WebSocket-Protocol", "chat, superchat"))),
        ([CHAT], answer(("Sec-WebSocket-Protocol", "Chat"))),
        ([], answer(DEFLATE)),
        ([DEFLATE], answer(("Sec-WebSocket-Extensions", "other"))),
        ([DEFLATE], answer(("Sec-WebSocket-Extensions", "permessage-deflate, other"))),
        ([DEFLATE], answer(("Sec-WebSocket-Extensions", ""))),
        ([("Sec-WebSocket-Extensions", "=")], answer(DEFLATE)),
    ],
)
def test_anything_else_is_no_sound_101(offers: list[tuple[str, str]], response: Response) -> None:
    assert asked(*offers).fault(response) is not None


def test_the_request_has_the_client_s_own_handshake() -> None:
    scope = scope_of(request(target="/a%20b?c=%2f", add=[CHAT, DEFLATE, ("Sec-WebSocket-Other", "x")]))
    head = Handshake(scope, [*HOST, ("x-a", "\xe9")]).request

    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    assert first == "GET /a%20b?c=%2f HTTP/1.1"
    assert lines == [
        "host: localhost",
        "x-a: \xe9",
        "upgrade: websocket",
        "connection: Upgrade",
        f"sec-websocket-key: {KEY}",
        "sec-websocket-version: 13",
        f"sec-websocket-protocol: {CHAT[1]}",
        f"sec-websocket-extensions: {DEFLATE[1]}",
    ]


def test_an_empty_offer_is_none() -> None:
    scope = scope_of(request(add=[("Sec-WebSocket-Protocol", ""), ("Sec-WebSocket-Extensions", " ")]))

    assert b"sec-websocket-protocol" not in Handshake(scope, HOST).request
    assert b"sec-websocket-extensions" not in Handshake(scope, HOST).request


def test_the_client_s_101_is_the_worker_s() -> None:
    chosen = [("Sec-WebSocket-Protocol", "chat"), ("Sec-WebSocket-Extensions", "permessage-deflate")]
    said = [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("X-Hop", "1"), ("Connection", "X-Hop"), ("Date", "x")]
    lines = client_head(answer(*chosen, *said)).split(b"\r\n")

    assert lines == [
        b"HTTP/1.1 101 Switching Protocols",
        b"upgrade: websocket",
        b"connection: Upgrade",
        b"sec-websocket-accept: " + accept_key(KEY).encode(),
        b"sec-websocket-protocol: chat",
        b"sec-websocket-extensions: permessage-deflate",
        b"set-cookie: a=1",
        b"set-cookie: b=2",
        b"",
        b"",
    ]
