"""The opening handshake on the wire."""

import pytest

from herdgate_loadtest.engine.wire import (
    MOST_BODY,
    MOST_HEAD,
    Handshake,
    Response,
    accept_for,
    check_upgrade,
    parse_response,
)
from herdgate_loadtest.errors import ConfigurationError, WireError

KEY = b"dGhlIHNhbXBsZSBub25jZQ=="  # the example of RFC 6455 section 1.3
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

UPGRADE = (
    b"HTTP/1.1 101 Switching Protocols\r\nUPGRADE: websocket\r\nconnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: " + ACCEPT.encode() + b"\r\n\r\n"
)
DENIAL = (
    b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 8\r\nHerdgate-Retry-Ms:7340\r\nVary: a\r\nVary: b\r\n"
    b'Content-Length: 17\r\nConnection: close\r\n\r\n{"retry_ms":7340}'
)
CHUNKED = (
    b"HTTP/1.1 503 \r\nTransfer-Encoding: chunked\r\n\r\n4;note=x\r\nbusy\r\nA\r\n, so sorry\r\n0\r\nTrailer: x\r\n\r\n"
)


def whole(data: bytes, *, ended: bool = False) -> Response:
    response = parse_response(data, ended=ended)
    assert response is not None
    return response


def test_handshake_is_a_valid_upgrade_request() -> None:
    sent = Handshake("127.0.0.1:80", "/ws?a=b").build(7, KEY)
    assert sent == (
        b"GET /ws?a=b HTTP/1.1\r\nHost: 127.0.0.1:80\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + KEY + b"\r\n\r\n"
    )


def test_handshake_carries_what_was_asked_for() -> None:
    handshake = Handshake("h", "/", origin="https://a.example", subprotocol="chat", headers=[("X-User", "u{n}")])
    sent = handshake.build(41, KEY, "1.abc")
    for line in (
        b"Origin: https://a.example",
        b"Sec-WebSocket-Protocol: chat",
        b"X-User: u41",
        b"Herdgate-Ticket: 1.abc",
    ):
        assert b"\r\n" + line + b"\r\n" in sent


def test_number_of_the_client_goes_into_the_path() -> None:
    assert Handshake("h", "/ws/{n}?id={n}").build(41, KEY).startswith(b"GET /ws/41?id=41 HTTP/1.1\r\n")


@pytest.mark.parametrize("value", ["a\r\nInjected: b", "t\u00fcr", "a\x00b"])
def test_value_that_would_break_the_request_is_refused(value: str) -> None:
    with pytest.raises(ConfigurationError, match="printable ASCII"):
        Handshake("h", "/", headers=[("X-User", value)])


def test_accept_is_that_of_the_rfc() -> None:
    assert accept_for(KEY) == ACCEPT


@pytest.mark.parametrize("data", [UPGRADE, DENIAL, CHUNKED], ids=["101", "429", "chunked"])
def test_nothing_is_decided_before_the_last_byte_needed(data: bytes) -> None:
    needed = data.index(b"0\r\nTrailer") + 3 if data is CHUNKED else len(data)
    for cut in range(needed):
        assert parse_response(data[:cut]) is None, cut
    assert parse_response(data[:needed]) == parse_response(data)


def test_upgrade_leaves_the_first_frames() -> None:
    response = whole(UPGRADE + b"\x81\x02hi")
    assert (response.status, response.body, response.rest) == (101, b"", b"\x81\x02hi")
    check_upgrade(response, KEY)


def test_denial_is_read_whole() -> None:
    response = whole(DENIAL)
    assert (response.status, response.body) == (429, b'{"retry_ms":7340}')
    assert response.headers["herdgate-retry-ms"] == "7340"
    assert response.headers["vary"] == "a, b"


def test_chunks_are_joined() -> None:
    assert whole(CHUNKED) == Response(503, {"transfer-encoding": "chunked"}, b"busy, so sorry", b"")


def test_body_without_a_length_lasts_until_the_end() -> None:
    data = b"HTTP/1.0 403 Forbidden\r\nServer: x\r\n\r\nno"
    assert parse_response(data) is None
    assert whole(data, ended=True).body == b"no"


def test_empty_body_needs_no_end() -> None:
    assert whole(b"HTTP/1.1 403\r\nContent-Length: 0\r\n\r\n").body == b""


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"SSH-2.0-OpenSSH_9\r\n", "not HTTP/1"),
        (b"\x00", "not HTTP/1"),
        (b"HTTP/2 200\r\n", "not HTTP/1"),
        (b"HTTP/1.9 200\r\n\r\n", "status line"),
        (b"HTTP/1.1 OK\r\n\r\n", "status line"),
        (b"HTTP/1.1 20\r\n\r\n", "status line"),
        (b"HTTP/1.1 2000 x\r\n\r\n", "status line"),
        (b"HTTP/1.1 429 x\r\nno colon\r\n\r\n", "header line"),
        (b"HTTP/1.1 429 x\r\n: empty\r\n\r\n", "header line"),
        (b"HTTP/1.1 429 x\r\nname : space\r\n\r\n", "header line"),
        (b"HTTP/1.1 429 x\r\nContent-Length: -1\r\n\r\n", "Content-Length"),
        (b"HTTP/1.1 429 x\r\nContent-Length: 1, 1\r\n\r\n", "Content-Length"),
        (b"HTTP/1.1 429 x\r\nContent-Length: %d\r\n\r\n" % (MOST_BODY + 1), "longer than"),
        (b"HTTP/1.1 429 x\r\n\r\n" + b"x" * (MOST_BODY + 1), "longer than"),
        (b"HTTP/1.1 429 x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * MOST_BODY, "longer than"),
        (b"HTTP/1.1 429 x\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n", "malformed chunk"),
        (b"HTTP/1.1 429 x\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", "malformed chunk"),
        (b"HTTP/1.1 429 " + b"x" * MOST_HEAD, "head of the answer"),
    ],
)
def test_what_is_no_answer_is_an_error(data: bytes, complaint: str) -> None:
    with pytest.raises(WireError, match=complaint):
        parse_response(data)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "without an answer"),
        (b"HTTP/1.1 42", "within the answer"),
        (DENIAL[:-1], "within the answer"),
        (CHUNKED[:60], "within the answer"),
    ],
)
def test_answer_that_ends_early_is_an_error(data: bytes, complaint: str) -> None:
    with pytest.raises(WireError, match=complaint):
        parse_response(data, ended=True)


@pytest.mark.parametrize("data", [UPGRADE.replace(b"s3pP", b"AAAA"), UPGRADE.replace(b"websocket", b"h2c")])
def test_upgrade_that_is_not_ours_is_refused(data: bytes) -> None:
    with pytest.raises(WireError, match="101 with"):
        check_upgrade(whole(data), KEY)
