"""Heads that are read at once: never in another way than uvicorn would, and never one that is not simple."""

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.fuzz_head import Judge, corpus, read
from herdgate.asgi import Receive, Scope, Send
from herdgate_gateway.client_leg import client_leg_class
from herdgate_gateway.front_door.head import MOST_BYTES, MOST_HEADERS, read_head
from herdgate_gateway.http_leg import HttpLeg
from tests.herdgate_gateway.gateways import serve
from tests.herdgate_gateway.handshakes import AMBIGUOUS, HANDSHAKE, KEY, WITH_BODY, request
from tests.wire import raw

PLAIN = request()


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    """uvicorn's own reading."""
    judge = Judge()
    yield judge
    judge.close()


def instead(name: str, value: str) -> bytes:
    """A handshake with another value of one header."""
    return request(drop=name, add=[(name, value)])


def swapped(old: bytes, new: bytes) -> bytes:
    """A handshake with other bytes in one place."""
    assert PLAIN.count(old) == 1
    return PLAIN.replace(old, new)


def with_headers(count: int) -> bytes:
    """A handshake with so many headers in all."""
    return request(add=[(f"X-{number}", "a") for number in range(count - len(HANDSHAKE))])


def with_value(length: int, colon: bytes = b": ") -> bytes:
    """A handshake with one value of so many bytes."""
    return swapped(b"Host: localhost", b"Host: localhost\r\nX" + colon + b"v" * length)


def of_length(length: int) -> bytes:
    """A handshake of so many bytes in all, on lines that are not too long."""
    data = request(add=[("X", "v" * 8_000), ("Y", "v" * 8_000), ("Z", "")])
    return data[:-4] + b"v" * (length - len(data)) + b"\r\n\r\n"


TAKEN = {
    "plain": PLAIN,
    "root": request(target="/"),
    "query": request(target="/ws?a=1&b=%20"),
    "empty query": request(target="/ws?"),
    "question marks": request(target="/ws??a?b"),
    "only a query": request(target="/?x"),
    "percent-encoded": request(target="/a%20b%2Fc/%C3%A9"),
    "percent-encoded, no UTF-8": request(target="/%ff%00"),
    "half a percent code": request(target="/%/%4/%zz%"),
    "two slashes": request(target="//evil.example/ws"),
    "looks like another URL": request(target="/http://u:p@evil.example:80/"),
    "dots": request(target="/a/../b/./c"),
    "backslash and brackets": request(target='/\\a[b]{c}|^`"<>'),
    "lower-case names": swapped(b"Upgrade: websocket", b"upgrade: websocket"),
    "upper-case names": swapped(b"Upgrade: websocket", b"UPGRADE: websocket"),
    "Upgrade in other letters": instead("Upgrade", "WebSocket"),
    "Connection in other letters": instead("Connection", "UPGRADE"),
    "Firefox's Connection": instead("Connection", "keep-alive, Upgrade"),
    "Connection without a space": instead("Connection", "Upgrade,Keep-Alive"),
    "no space behind the colon": swapped(b"Host: localhost", b"Host:localhost"),
    "spaces behind the colon": swapped(b"Host: localhost", b"Host:    localhost"),
    "spaces and colons in a value": request(add=[("X", "a: b:  c :d")]),
    "a colon only": request(add=[("X", ":")]),
    "strange tokens": request(add=[("!#$%&'*+-.^_`|~09", "x")]),
    "underscores": request(add=[("Content_Length", "5"), ("Sec_WebSocket_Key", "x")]),
    "unimportant headers twice": request(add=[("Cookie", "a=b"), ("X", "y"), ("cookie", "c=d"), ("X", "y")]),
    "subprotocols": request(add=[("Sec-WebSocket-Protocol", "chat, superchat ,v1.x,  y")]),
    "one subprotocol": request(add=[("Sec-WebSocket-Protocol", "chat")]),
    "extensions": request(add=[("Sec-WebSocket-Extensions", 'permessage-deflate; a="b, c"')]),
    "proxy-connection": request(add=[("Proxy-Connection", "close"), ("Keep-Alive", "1"), ("TE", "trailers")]),
    "http2-settings": request(add=[("HTTP2-Settings", "AAMAAABkAAQAAP__")]),
    "100 headers": with_headers(MOST_HEADERS),
    "longest line": with_value(8_192 - 3 - len("X: ")),
    "longest line, no space behind the colon": with_value(8_192 - 3 - len("X:"), b":"),
    "longest target": request(target="/" + "a" * (8_192 - 3 - len("GET / HTTP/1.1"))),
    "longest head": of_length(MOST_BYTES),
}

LEFT = {
    **{f"ambiguous: {name}": data for name, data in AMBIGUOUS.items()},
    **{f"with a body: {name}": data for name, data in WITH_BODY.items()},
    "nothing": b"",
    "a blank line": b"\r\n\r\n",
    "no headers": b"GET /ws HTTP/1.1\r\n\r\n",
    "plain HTTP": b"GET /ws HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "blank lines before": b"\r\n" + PLAIN,
    "a blank line behind": PLAIN + b"\r\n",
    "two blank lines behind": PLAIN + b"\r\n\r\n",
    "frames behind": PLAIN + b"\x81\x80\0\0\0\0",
    "pipelined": PLAIN + PLAIN,
    "pipelined before": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + PLAIN,
    "HTTP/1.0": swapped(b"HTTP/1.1", b"HTTP/1.0"),
    "HTTP/1.2": swapped(b"HTTP/1.1", b"HTTP/1.2"),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/0.9": swapped(b" HTTP/1.1", b""),
    "http/1.1": swapped(b"HTTP/1.1", b"http/1.1"),
    "lower-case method": request("get"),
    "HEAD": request("HEAD"),
    "CONNECT": request("CONNECT", "localhost:80"),
    "longer method": request("GETS"),
    "two spaces before the target": swapped(b"GET ", b"GET  "),
    "two spaces behind the target": swapped(b" HTTP", b"  HTTP"),
    "a space before the method": b" " + PLAIN,
    "a space behind the version": swapped(b"HTTP/1.1", b"HTTP/1.1 "),
    "a space in the target": request(target="/a b"),
    "a tab before the target": swapped(b"GET ", b"GET\t"),
    "a tab in the target": request(target="/a\tb"),
    "no target": swapped(b"/ws ", b""),
    "asterisk form": request(target="*"),
    "authority form": request(target="localhost:80"),
    "absolute form of a WebSocket": request(target="ws://localhost/ws"),
    "relative target": request(target="ws"),
    "only a fragment": request(target="/#"),
    "non-ASCII target": request(target="/é"),
    "NUL in the target": request(target="/\0"),
    "DEL in the target": request(target="/\x7f"),
    "NUL in a name": request(add=[("X\0", "a")]),
    "NUL in a value": request(add=[("X", "a\0b")]),
    "DEL in a value": request(add=[("X", "a\x7fb")]),
    "bell in a value": request(add=[("X", "a\x07b")]),
    "obs-text in a value": request(add=[("X", "é")]),
    "obs-text in a name": request(add=[("é", "x")]),
    "a tab in a value": request(add=[("X", "a\tb")]),
    "a tab before a value": request(add=[("X", "\ta")]),
    "a tab behind a value": request(add=[("X", "a\t")]),
    "a space behind a value": swapped(b"localhost", b"localhost "),
    "a space behind the last value": request(add=[("X", "a ")]),
    "empty value": request(add=[("X", ""), ("Y", "a")]),
    "empty last value": request(add=[("X", "")]),
    "empty last value without a space": PLAIN[:-2] + b"X:\r\n\r\n",
    "spaces for a value": request(add=[("X", "   "), ("Y", "a")]),
    "empty name": swapped(b"Host: localhost", b"Host: localhost\r\n: a"),
    "no colon": swapped(b"Host: localhost", b"Host: localhost\r\nX"),
    "no colon in the last line": PLAIN[:-2] + b"X\r\n\r\n",
    "no colon in the first line": swapped(b"Host: localhost", b"X\r\nHost: localhost"),
    "a space before the colon": swapped(b"Host: ", b"Host : "),
    "a space in a name": request(add=[("X Y", "a")]),
    "a comma in a name": request(add=[("X,Y", "a")]),
    "a slash in a name": request(add=[("X/Y", "a")]),
    "a space before the first name": swapped(b"Host: ", b" Host: "),
    "folded with a space": swapped(b"localhost", b"local\r\n host"),
    "folded with a tab": swapped(b"localhost", b"local\r\n\thost"),
    "folded before the value": swapped(b"Host: ", b"Host:\r\n "),
    "bare LF behind the request line": swapped(b"HTTP/1.1\r\n", b"HTTP/1.1\n"),
    "bare LF behind a header": swapped(b"localhost\r\n", b"localhost\n"),
    "bare LF at the end": PLAIN[:-4] + b"\n\n",
    "bare LF for the blank line": PLAIN[:-2] + b"\n",
    "bare CR behind a header": swapped(b"localhost\r\n", b"localhost\r"),
    "bare CR in a value": request(add=[("X", "a\rb")]),
    "LF CR": swapped(b"localhost\r\n", b"localhost\n\r"),
    "two CR": swapped(b"localhost\r\n", b"localhost\r\r\n"),
    "only LF": PLAIN.replace(b"\r\n", b"\n"),
    "no Upgrade": request(drop="Upgrade"),
    "Upgrade of a version": instead("Upgrade", "websocket/13"),
    "Upgrade with a comma": instead("Upgrade", "websocket,"),
    "no Connection": request(drop="Connection"),
    "two Connections": request(add=[("Connection", "keep-alive")]),
    "Connection without Upgrade": instead("Connection", "keep-alive"),
    "Connection with Upgrade twice": instead("Connection", "upgrade, upgrade"),
    "Connection that closes": instead("Connection", "close, upgrade"),
    "Connection that names a header": instead("Connection", "upgrade, x-forwarded-for"),
    "Connection with a longer token": instead("Connection", "upgrades"),
    "no key": request(drop="Sec-WebSocket-Key"),
    "long key": instead("Sec-WebSocket-Key", "MDEyMzQ1Njc4OWFiY2RlZmc="),
    "key that is no base64": instead("Sec-WebSocket-Key", "MDEyMzQ1Njc4OWFi!2RlZg=="),
    "key with more behind": instead("Sec-WebSocket-Key", KEY + "="),
    "no version": request(drop="Sec-WebSocket-Version"),
    "version 013": instead("Sec-WebSocket-Version", "013"),
    "two origins": request(add=[("Origin", "null"), ("Origin", "null")]),
    "two lists of subprotocols": request(add=[("Sec-WebSocket-Protocol", "a"), ("Sec-WebSocket-Protocol", "b")]),
    "subprotocol that is no token": request(add=[("Sec-WebSocket-Protocol", "a b")]),
    "empty subprotocol": request(add=[("Sec-WebSocket-Protocol", "a,,b")]),
    "subprotocols that end with a comma": request(add=[("Sec-WebSocket-Protocol", "a,")]),
    "length 0": request(add=[("Content-Length", "0")]),
    "Expect": request(add=[("Expect", "100-continue")]),
    "101 headers": with_headers(MOST_HEADERS + 1),
    "line that is too long": with_value(8_192 - 3 - len("X: ") + 1),
    "line that uvicorn makes too long": with_value(8_192 - 2 - len("X:"), b":"),
    "target that is too long": request(target="/" + "a" * (8_192 - 3 - len("GET / HTTP/1.1") + 1)),
    "head that is too long": of_length(MOST_BYTES + 1),
}


@pytest.mark.parametrize("data", TAKEN.values(), ids=TAKEN)
@pytest.mark.parametrize("scheme", ["ws", "wss"])
def test_simple_head_becomes_the_scope_that_uvicorn_makes(data: bytes, scheme: str, judge: Judge) -> None:
    scope = read(data, scheme)
    assert scope is not None
    assert scope == judge.scope(data, scheme)
    assert list(map(type, scope.values())) == list(map(type, (judge.scope(data, scheme) or {}).values()))


@pytest.mark.parametrize("data", LEFT.values(), ids=LEFT)
def test_head_that_is_not_simple_is_left_to_uvicorn(data: bytes) -> None:
    assert read(data) is None


@pytest.mark.parametrize("data", corpus(), ids=len)
def test_head_that_has_not_come_whole_is_left_to_uvicorn(data: bytes) -> None:
    assert read(data) is not None
    assert not any(read(data[:length]) for length in range(len(data)))
    assert not any(read(data[start:]) for start in range(1, len(data)))


def test_no_byte_in_any_place_is_read_in_another_way_than_uvicorn_does(judge: Judge) -> None:
    taken = 0
    for place in range(len(PLAIN) + 1):
        for byte in (*range(0x23), *b",/:;=?A\x5c", *range(0x7E, 0x101, 3)):
            put = bytes([byte % 256])
            taken += judge.check(PLAIN[:place] + put + PLAIN[place:])
            taken += judge.check(PLAIN[:place] + put + PLAIN[place + 1 :])
    assert taken > 100


_TOKENS = st.from_regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}", fullmatch=True)
_VALUES = st.from_regex(r"[!-~]([ -~]{0,60}[!-~])?", fullmatch=True)
_ANY = st.text(st.characters(max_codepoint=0xFF), max_size=20)
_OWN = {name.lower() for name in HANDSHAKE} | {"content-length", "transfer-encoding", "expect", "origin"}
_FIELDS = st.tuples(_TOKENS, _VALUES).filter(
    lambda pair: pair[0].lower() not in _OWN and pair[0].lower() != "sec-websocket-protocol"
)


@given(
    target=st.from_regex(r"/[!-\"$-~]{0,60}", fullmatch=True),
    fields=st.lists(_FIELDS, max_size=20),
    offer=st.lists(_TOKENS, max_size=4),
    order=st.randoms(use_true_random=False),
)
def test_every_head_of_sound_parts_is_taken_and_read_as_uvicorn_does(
    judge: Judge, target: str, fields: list[tuple[str, str]], offer: list[str], order: Random
) -> None:
    pairs = [*HANDSHAKE.items(), *fields]
    if offer:
        pairs.append(("Sec-WebSocket-Protocol", ", ".join(offer)))
    order.shuffle(pairs)
    lines = [f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in pairs)]
    assert judge.check("\r\n".join(lines).encode() + b"\r\n\r\n")


@given(target=_ANY, name=_TOKENS | _ANY, colon=st.sampled_from([":", ": ", ":\t", " :", "", ":\r\n "]), value=_ANY)
def test_no_head_is_read_in_another_way_than_uvicorn_does(
    judge: Judge, target: str, name: str, colon: str, value: str
) -> None:
    judge.check(request(target=f"/{target}").decode("utf-8").encode("latin-1"))
    line = f"{name}{colon}{value}\r\n".encode("latin-1")
    judge.check(PLAIN[:-2] + line + b"\r\n")
    judge.check(swapped(b"Host: ", line + b"Host: "))


def test_no_two_scopes_share_what_can_be_changed() -> None:
    first, second = read(PLAIN), read(PLAIN)
    assert first is not None
    assert second is not None
    for name, value in first.items():
        assert isinstance(value, str | bytes | tuple) or value is not second[name]


def test_peer_without_an_address_and_a_unix_socket_are_told_as_they_are() -> None:
    scope = read_head(PLAIN, client=None, server=("/run/herdgate.sock", None), scheme="ws")
    assert scope is not None
    assert (scope["client"], scope["server"]) == (None, ("/run/herdgate.sock", None))


@pytest.mark.parametrize("data", corpus(), ids=len)
async def test_app_behind_the_gateway_s_own_legs_gets_the_same_scope(data: bytes) -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)
        await receive()
        await send({"type": "websocket.close"})

    ws = client_leg_class(max_message_bytes=100, max_fragment_bytes=100, close_s=1)
    async with serve(app, http=HttpLeg, ws=ws, proxy_headers=False) as port, raw(port, data) as client:
        assert (await client.head())[0] == 403
    (scope,) = seen
    del scope["extensions"]["herdgate.line"]
    assert scope == read_head(data, client=scope["client"], server=("127.0.0.1", port), scheme="ws")
