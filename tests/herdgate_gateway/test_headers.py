"""The heads of a handshake on its way through."""

import base64
from typing import Any

import pytest

from herdgate import ConfigurationError
from herdgate_gateway.headers import (
    Forwarding,
    accept_headers,
    check_handshake,
    refusal_headers,
    request_headers,
    target,
)

KEY = base64.b64encode(b"0123456789abcdef")
HANDSHAKE = [
    (b"host", b"chat.example"),
    (b"upgrade", b"websocket"),
    (b"connection", b"Upgrade"),
    (b"sec-websocket-version", b"13"),
    (b"sec-websocket-key", KEY),
]


def scope(*headers: tuple[bytes, bytes], without: bytes = b"", **more: Any) -> dict[str, Any]:
    pairs = [pair for pair in HANDSHAKE if pair[0] != without]
    base = {"type": "websocket", "scheme": "ws", "path": "/ws", "raw_path": b"/ws", "query_string": b""}
    return {**base, "client": ("192.0.2.7", 5000), "headers": [*pairs, *headers], **more}


def sent(asked: dict[str, Any], **forwarding: Any) -> list[tuple[str, str]]:
    return request_headers(asked, Forwarding(**forwarding))


def value(asked: dict[str, Any], name: str, **forwarding: Any) -> list[str]:
    return [text for key, text in sent(asked, **forwarding) if key == name]


def test_the_plain_handshake_is_fine() -> None:
    assert check_handshake(scope()) is None
    assert check_handshake(scope((b"content-length", b"0"))) is None


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (scope((b"host", b"other.example")), 400),
        (scope(without=b"host"), 400),
        (scope((b"content-length", b"5")), 400),
        (scope((b"content-length", b"0"), (b"content-length", b"5")), 400),
        (scope((b"content-length", b"0, 5")), 400),
        (scope((b"transfer-encoding", b"chunked")), 400),
        (scope((b"Transfer-Encoding", b"identity")), 400),
        (scope((b"upgrade", b"websocket")), 400),
        (scope((b"upgrade", b"h2c")), 400),
        (scope((b"upgrade", b"websocket, h2c"), without=b"upgrade"), 400),
        (scope(without=b"upgrade"), 400),
        (scope((b"sec-websocket-version", b"8"), without=b"sec-websocket-version"), 426),
        (scope((b"sec-websocket-version", b"13")), 426),
        (scope((b"sec-websocket-key", KEY)), 400),
        (scope((b"sec-websocket-key", b"c2hvcnQ="), without=b"sec-websocket-key"), 400),
        (scope((b"sec-websocket-key", b"\xff" * 24), without=b"sec-websocket-key"), 400),
        (scope(raw_path=b"http://evil.example/ws"), 400),
        (scope(raw_path=b"*"), 400),
        (scope(raw_path=b""), 400),
        (scope(raw_path=b"/a b"), 400),
    ],
)
def test_case_6_12_what_could_be_read_in_two_ways_is_refused(asked: dict[str, Any], status: int) -> None:
    fault = check_handshake(asked)

    assert fault is not None
    assert fault.status == status


def test_the_path_and_query_pass_as_they_came() -> None:
    assert target(scope(raw_path=b"/a%2Fb/%c3%a4", query_string=b"x=%20&y")) == "/a%2Fb/%c3%a4?x=%20&y"
    assert target(scope(raw_path=None, path="/ä b")) == "/%C3%A4%20b"


def test_there_is_one_host_and_it_is_the_client_s() -> None:
    assert sent(scope())[0] == ("host", "chat.example")
    assert value(scope((b"connection", b"host")), "host") == ["chat.example"]


def test_the_handshake_s_own_headers_and_those_between_two_hops_stay_here() -> None:
    dropped = [
        (b"keep-alive", b"timeout=5"),
        (b"te", b"trailers"),
        (b"trailer", b"x"),
        (b"proxy-authorization", b"Basic eA=="),
        (b"proxy-connection", b"keep-alive"),
        (b"http2-settings", b"AAMAAABkAAQCAAAAAAIAAAAA"),
        (b"content-length", b"0"),
        (b"expect", b"100-continue"),
        (b"sec-websocket-extensions", b"permessage-deflate"),
        (b"sec-websocket-protocol", b"chat"),
        (b"sec-websocket-something", b"new"),
        (b"herdgate-ticket", b"1.abc"),
        (b"herdgate_ticket", b"1.abc"),
        (b"herdgate-anything", b"1"),
    ]

    names = {name for name, _ in sent(scope(*dropped))}

    assert names == {"host", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"}


def test_the_worker_is_told_what_a_second_socket_does_by_the_gateway_only() -> None:
    forged = (b"herdgate-duplicates", b"allow")
    told = request_headers(scope(forged, state={"connection_id": "abc", "duplicates": "replace"}), Forwarding())
    assert [value for name, value in told if name == "herdgate-duplicates"] == ["replace"]
    told = request_headers(scope(forged, state={"connection_id": "abc"}), Forwarding())
    assert [value for name, value in told if name == "herdgate-duplicates"] == []


def test_the_worker_is_told_the_one_connection_id() -> None:
    forged = [(b"herdgate-connection-id", b"forged"), (b"Herdgate_Connection_Id", b"forged")]
    found = scope(*forged, (b"connection", b"herdgate-connection-id"), state={"connection_id": "abc"})

    assert [pair for pair in sent(found) if "connection" in pair[0].lower()] == [("herdgate-connection-id", "abc")]
    assert not value(scope(*forged, state={}), "herdgate-connection-id")


def test_case_6_8_what_connection_names_stays_here() -> None:
    asked = scope((b"connection", b"Upgrade, X-Foo ,x-bar"), (b"x-foo", b"1"), (b"X-Bar", b"2"), (b"x-kept", b"3"))

    assert value(asked, "x-kept") == ["3"]
    assert not value(asked, "x-foo")
    assert not value(asked, "x-bar")


def test_connection_cannot_take_away_what_we_say() -> None:
    asked = scope((b"connection", b"x-forwarded-for, x-forwarded-proto"))

    assert value(asked, "x-forwarded-for") == ["192.0.2.7"]
    assert value(asked, "x-forwarded-proto") == ["http"]


def test_everything_else_passes_in_order_and_as_it_is() -> None:
    others = [(b"cookie", b"a=1"), (b"origin", b"https://x"), (b"cookie", b"b=2"), (b"x-text", b"caf\xe9")]

    assert sent(scope(*others))[1:5] == [
        ("cookie", "a=1"),
        ("origin", "https://x"),
        ("cookie", "b=2"),
        ("x-text", "café"),
    ]


@pytest.mark.parametrize(
    "name",
    [b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"x-forwarded-port", b"forwarded", b"x-real-ip"],
)
def test_what_an_untrusted_peer_says_of_itself_is_replaced(name: bytes) -> None:
    for spelling in (name, name.replace(b"-", b"_"), name.title()):
        pairs = sent(scope((spelling, b"203.0.113.9")))

        assert "203.0.113.9" not in [text for _, text in pairs]
        assert ("x-forwarded-for", "192.0.2.7") in pairs
        assert ("x-forwarded-host", "chat.example") in pairs


def test_a_trusted_proxy_is_believed_about_address_and_scheme() -> None:
    asked = scope(
        (b"x-forwarded-for", b"198.51.100.1, 203.0.113.9"),
        (b"x-forwarded-proto", b"http, HTTPS"),
        (b"x-forwarded-host", b"evil.example"),
    )
    trusted = {"trusted_proxies": ["192.0.2.0/24"]}

    assert value(asked, "x-forwarded-for", **trusted) == ["203.0.113.9"]
    assert value(asked, "x-forwarded-proto", **trusted) == ["https"]
    assert value(asked, "x-forwarded-host", **trusted) == ["chat.example"], "many proxies pass this one through"


def test_a_trusted_proxy_may_speak_forwarded() -> None:
    asked = scope((b"forwarded", b'for="[2001:db8::17]:4711";proto=https'), (b"x-forwarded-for", b"203.0.113.9"))
    trusted: dict[str, Any] = {"trusted_proxies": ["192.0.2.7"], "forwarding_header": "forwarded"}

    assert value(asked, "x-forwarded-for", **trusted) == ["2001:db8::17"]


def test_an_ipv6_client_is_named_in_full() -> None:
    asked = scope(client=("2001:db8:1:2:3:4:5:6", 5000))

    assert value(asked, "x-forwarded-for") == ["2001:db8:1:2:3:4:5:6"]


@pytest.mark.parametrize("client", [None, ("", 0)])
def test_a_peer_without_an_address_is_not_given_one(client: Any) -> None:
    assert not value(scope((b"x-forwarded-for", b"203.0.113.9"), client=client), "x-forwarded-for")


@pytest.mark.parametrize(("told", "proto"), [(b"gopher", "https"), (b"", "https"), (b"http", "http")])
def test_the_scheme_is_that_of_the_connection_unless_a_trusted_proxy_knows_better(told: bytes, proto: str) -> None:
    asked = scope((b"x-forwarded-proto", told), scheme="wss")

    assert value(asked, "x-forwarded-proto") == ["https"]
    assert value(asked, "x-forwarded-proto", trusted_proxies=["192.0.2.7"]) == [proto]


def test_a_network_that_is_none_is_named() -> None:
    with pytest.raises(ConfigurationError, match="trusted_proxies"):
        Forwarding(["everywhere"])


def test_the_client_s_101_carries_what_the_worker_s_application_added() -> None:
    pairs = [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade, X-Hop"),
        ("X-Hop", "1"),
        ("Sec-WebSocket-Accept", "x"),
        ("Sec-WebSocket-Protocol", "chat"),
        ("Date", "now"),
        ("Server", "uvicorn"),
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
        ("X-Text", "café"),
    ]

    assert accept_headers(pairs) == [(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"x-text", b"caf\xe9")]


def test_a_refusal_keeps_all_but_its_framing() -> None:
    pairs = [
        ("Transfer-Encoding", "chunked"),
        ("Content-Length", "999"),
        ("Connection", "keep-alive"),
        ("Keep-Alive", "timeout=5"),
        ("Retry-After", "7"),
        ("Sec-WebSocket-Version", "13"),
    ]

    assert refusal_headers(pairs, b"wait") == [
        (b"retry-after", b"7"),
        (b"sec-websocket-version", b"13"),
        (b"content-length", b"4"),
        (b"connection", b"close"),
    ]
