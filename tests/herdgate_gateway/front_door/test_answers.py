"""Denials as bytes: what real clients read in them."""

import asyncio
import http.client
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode

from herdgate.core.answers import Denied
from herdgate.denial import http_denial
from herdgate_gateway.front_door.answers import close_answer, http_answer
from herdgate_gateway.front_door.head import read_head
from herdgate_gateway.handshake import NO_HANDSHAKE, answer_of
from tests.wire import WAIT_S, Answer, ask, knock, open_socket, read_close

KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
COOKIES = [(b"set-cookie", b"a=1; Path=/"), (b"set-cookie", b"b=2; HttpOnly")]
REASON = '{"retry_ms":7340,"ticket":"abc"}'


@asynccontextmanager
async def answering(answer: Callable[[bytes], bytes]) -> AsyncIterator[int]:
    """A server that says just these bytes to a head, and hangs up once the client does; the port."""
    serving: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            writer.write(answer(await reader.readuntil(b"\r\n\r\n")))
            writer.write_eof()
            await asyncio.wait_for(reader.read(), WAIT_S)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.create_task(serve(reader, writer)))

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.gather(*serving)


def closing(
    code: int, reason: str, headers: list[tuple[bytes, bytes]], *, echo: bool = True
) -> Callable[[bytes], bytes]:
    """Answers as the front door does: a head is read, and closed with the first subprotocol echoed."""

    def answer(data: bytes) -> bytes:
        scope = read_head(data, client=None, server=None, scheme="ws")
        assert scope is not None
        key = dict(scope["headers"])[b"sec-websocket-key"]
        subprotocol = next(iter(scope["subprotocols"]), None) if echo else None
        return close_answer(key, subprotocol, headers, code, reason)

    return answer


def status_line(status: int) -> bytes:
    return http_answer(status, [], b"").split(b"\r\n")[0]


async def test_client_reads_status_headers_and_body_of_a_denied_handshake() -> None:
    headers, body = http_denial(Denied("rate", 7.34, ticket="abc"))
    async with answering(lambda _: http_answer(429, headers, body)) as port:
        answer = await knock(port, "/ws")
    assert answer.status == 429
    assert answer.json()["retry_ms"] == 7340
    assert answer.headers == {name.decode(): value.decode() for name, value in headers}
    assert (answer.headers["retry-after"], answer.headers["herdgate-ticket"]) == ("8", "abc")


@pytest.mark.parametrize("body", [b"", b"no\r\n\r\n", bytes(range(256)) * 300])
async def test_body_arrives_whole(body: bytes) -> None:
    async with answering(lambda _: http_answer(503, [], body)) as port:
        assert await ask(port, "/") == Answer(503, {"content-length": str(len(body)), "connection": "close"}, body)


async def test_standard_library_reads_an_answer_too() -> None:
    fault = answer_of(NO_HANDSHAKE)
    async with answering(lambda _: http_answer(*fault)) as port:

        def get() -> tuple[int, str, str | None, bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
            connection.request("GET", "/")
            response = connection.getresponse()
            read = response.status, response.reason, response.getheader("upgrade"), response.read()
            connection.close()
            return read

        assert await asyncio.to_thread(get) == (426, "Upgrade Required", "websocket", fault.body)


def test_answer_says_once_how_long_it_is_and_that_it_is_the_last() -> None:
    given = [
        (b"content-length", b"7"),
        (b"connection", b"keep-alive"),
        (b"transfer-encoding", b"chunked"),
        (b"x", b"y"),
    ]
    assert http_answer(403, given, b"no") == (
        b"HTTP/1.1 403 Forbidden\r\nx: y\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno"
    )


def test_headers_keep_their_order_and_their_repetitions() -> None:
    head, _, _ = http_answer(503, [(b"x", b"1"), *COOKIES, (b"x", b"")], b"").partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[1:5] == [b"x: 1", b"set-cookie: a=1; Path=/", b"set-cookie: b=2; HttpOnly", b"x: "]


def test_status_has_its_standard_phrase_and_an_unknown_one_none() -> None:
    assert status_line(429) == b"HTTP/1.1 429 Too Many Requests"
    assert status_line(599) == b"HTTP/1.1 599 "


async def test_client_with_an_unknown_status_reads_it() -> None:
    async with answering(lambda _: http_answer(599, [], b"x")) as port:
        assert (await knock(port, "/ws")).status == 599


async def test_client_reads_code_reason_and_headers_of_a_close_denial() -> None:
    async with answering(closing(1013, REASON, COOKIES[:1])) as port:
        closed = await read_close(port, "/ws")
    assert (closed.code, closed.reason, closed.subprotocol) == (1013, REASON, None)
    assert closed.headers["set-cookie"] == "a=1; Path=/"
    assert "content-length" not in closed.headers


async def test_client_gets_every_cookie_and_the_first_subprotocol_it_offered() -> None:
    async with answering(closing(1012, "", COOKIES)) as port:
        client = await open_socket(port, "/ws", subprotocols=["chat", "other"])
        with pytest.raises(ConnectionClosed) as ended:
            await asyncio.wait_for(client.recv(), WAIT_S)
    assert ended.value.rcvd is not None
    assert (ended.value.rcvd.code, ended.value.rcvd.reason) == (1012, "")
    assert client.subprotocol == "chat"
    assert client.response is not None
    assert client.response.headers.get_all("set-cookie") == ["a=1; Path=/", "b=2; HttpOnly"]


@pytest.mark.parametrize("reason", ["x" * 123, "é" * 61, ""])
async def test_reason_of_up_to_123_bytes_arrives_whole(reason: str) -> None:
    async with answering(closing(1013, reason, [])) as port:
        assert (await read_close(port, "/ws")).reason == reason


def test_close_answer_is_the_one_of_the_standard_and_a_frame() -> None:
    head, _, frame = close_answer(KEY, None, [], 1013, "later").partition(b"\r\n\r\n")
    assert set(head.split(b"\r\n")) == {
        b"HTTP/1.1 101 Switching Protocols",
        b"upgrade: websocket",
        b"connection: upgrade",
        b"sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",  # RFC 6455 section 1.3
    }
    assert frame == Frame(Opcode.CLOSE, b"\x03\xf5later").serialize(mask=False)


def test_headers_of_a_close_answer_cannot_frame_it() -> None:
    given = [(b"connection", b"close"), (b"content-length", b"5"), (b"transfer-encoding", b"chunked"), (b"x", b"y")]
    assert close_answer(KEY, None, given, 1013, "") == close_answer(KEY, None, given[-1:], 1013, "")


@pytest.mark.parametrize("reason", ["x" * 124, "é" * 62])
def test_longer_reason_is_an_error(reason: str) -> None:
    with pytest.raises(ValueError, match="123 bytes"):
        close_answer(KEY, None, [], 1013, reason)


@pytest.mark.parametrize(
    "bad", [b"a\r\nset-cookie: x=y", b"a\nb", b"a\rb", b"a\r\n", b"a\0b", b"\r\n\r\nbody", b"\n\r"]
)
def test_header_that_would_split_the_answer_is_an_error(bad: bytes) -> None:
    for headers in [(b"x", bad)], [(bad, b"x")], [(b"y", b"z"), (b"x", bad), (b"y", b"z")]:
        with pytest.raises(ValueError, match="CR, LF or NUL"):
            http_answer(429, headers, b"")
        with pytest.raises(ValueError, match="CR, LF or NUL"):
            close_answer(KEY, None, headers, 1013, "")


@pytest.mark.parametrize("subprotocol", ["a\r\nset-cookie: x=y", "a\nb", "a\0", "é"])
def test_subprotocol_that_is_no_token_splits_nothing(subprotocol: str) -> None:
    with pytest.raises(ValueError, match=r"CR, LF or NUL|ascii"):
        close_answer(KEY, subprotocol, [], 1013, "")
