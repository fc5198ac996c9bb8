"""What a request says of itself, and that no ticket is left in it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate.request import Request, _read_any, _read_plain, read_request

TICKET = "1.AQGLz-Voe96tvu8AAAAqukUzCjjfpdqAxA"
OTHER = "1.AAGLz-Voe96tvu8AAAAqukUzCjjfpdqAxA"
COOKIE = f"herdgate_ticket_default={TICKET}".encode()
SESSION = f"herdgate_session_default={TICKET}".encode()

Pairs = list[tuple[bytes, bytes]]


def scope_of(*headers: tuple[bytes, bytes], query: bytes = b"") -> dict[str, Any]:
    return {"type": "websocket", "path": "/ws", "query_string": query, "headers": list(headers)}


def read(scope: dict[str, Any], header: str = "x-forwarded-for") -> Request:
    return read_request(scope, "default", header)


def test_request_without_anything_says_nothing() -> None:
    scope = scope_of()
    assert read(scope) == Request(None, None, None, "", ())
    assert scope == scope_of()


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ([(b"herdgate-ticket", TICKET.encode())], b""),
        ([], b"herdgate_ticket=" + TICKET.encode()),
        ([(b"cookie", COOKIE)], b""),
        ([(b"herdgate-ticket", TICKET.encode()), (b"cookie", b"herdgate_ticket_default=x")], b"herdgate_ticket=y"),
        ([(b"cookie", b"herdgate_ticket_default=x")], b"herdgate_ticket=" + TICKET.encode()),
        ([(b"herdgate-ticket", b"")], b"herdgate_ticket=" + TICKET.encode()),
        ([(b"cookie", COOKIE)], b"herdgate_ticket="),
        ([(b"herdgate-ticket", TICKET.encode()), (b"herdgate-ticket", b"second")], b""),
        ([], b"herdgate_ticket=&herdgate_ticket=" + TICKET.encode()),
        ([(b"cookie", b"herdgate_ticket_default=; " + COOKIE)], b""),
        ([(b"cookie", b"a=b"), (b"cookie", COOKIE)], b""),
    ],
)
def test_ticket_is_read_from_header_then_query_then_cookie(headers: Pairs, query: bytes) -> None:
    assert read(scope_of(*headers, query=query)).ticket == TICKET


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ([(b"herdgate-ticket", b"")], b""),
        ([], b"xherdgate_ticket=" + TICKET.encode()),
        ([], b"herdgate_ticket_default=" + TICKET.encode()),
        ([(b"cookie", b"herdgate_ticket_other=" + TICKET.encode())], b""),
        ([(b"cookie", b"herdgate_ticket=" + TICKET.encode())], b""),
        ([(b"x-herdgate-ticket", TICKET.encode())], b""),
    ],
)
def test_other_names_show_no_ticket(headers: Pairs, query: bytes) -> None:
    assert read(scope_of(*headers, query=query)).ticket is None


@pytest.mark.parametrize(
    ("query", "left"),
    [
        (b"", b""),
        (b"herdgate_ticket=x", b""),
        (b"a=1&herdgate_ticket=x&b=2", b"a=1&b=2"),
        (b"herdgate_ticket=x&herdgate_ticket=y&a=1", b"a=1"),
        (b"herdgate_ticket", b""),
        (b"a=herdgate_ticket=x", b"a=herdgate_ticket=x"),
        (b"a=1&&b=%20+", b"a=1&&b=%20+"),
        (b"a=1&&herdgate_ticket=x&b=%C3%A9+", b"a=1&&b=%C3%A9+"),
    ],
)
def test_query_keeps_all_but_the_ticket_as_it_was(query: bytes, left: bytes) -> None:
    scope = scope_of(query=query)
    read(scope)
    assert scope["query_string"] == left


@pytest.mark.parametrize(
    ("cookies", "left"),
    [
        ([b"a=1; b=2"], [b"a=1; b=2"]),
        ([COOKIE], []),
        ([b"a=1; " + COOKIE + b"; b=2"], [b"a=1; b=2"]),
        ([b"herdgate_ticket_other=x; a=1"], [b"a=1"]),
        ([COOKIE, b"a=1"], [b"a=1"]),
        ([b"a=herdgate_ticket_default"], [b"a=herdgate_ticket_default"]),
        ([b"a=\xe9=; " + COOKIE], [b"a=\xe9="]),
        ([COOKIE + b";a=1"], [b"a=1"]),
    ],
)
def test_cookies_of_the_app_are_left_as_they_were(cookies: list[bytes], left: list[bytes]) -> None:
    scope = scope_of(*[(b"cookie", value) for value in cookies])
    read(scope)
    assert scope["headers"] == [(b"cookie", value) for value in left]


def test_other_headers_stay_in_their_order() -> None:
    before = [(b"host", b"a"), (b"x", b"1"), (b"herdgate-ticket", b"t"), (b"x", b"2"), (b"origin", b"https://a")]
    scope = scope_of(*before)
    read(scope)
    assert scope["headers"] == [pair for pair in before if pair[0] != b"herdgate-ticket"]


def test_headers_may_be_any_iterable_of_pairs() -> None:
    scope = {**scope_of(), "headers": iter([[b"host", b"a"], [b"herdgate-ticket", TICKET.encode()]])}
    assert read(scope).ticket == TICKET
    assert scope["headers"] == [(b"host", b"a")]


def test_scope_without_a_query_has_none() -> None:
    scope = {"type": "websocket", "path": "/ws", "headers": []}
    assert read(scope).ticket is None


def test_origin_host_and_forwarding_header_are_read_and_stay() -> None:
    headers = [
        (b"host", b"app.example"),
        (b"host", b"second.example"),
        (b"origin", b"https://app.example"),
        (b"x-forwarded-for", b"203.0.113.7"),
        (b"forwarded", b"for=198.51.100.9"),
        (b"x-forwarded-for", b"10.0.0.1"),
    ]
    scope = scope_of(*headers)
    assert read(scope) == Request(None, None, "https://app.example", "app.example", ("203.0.113.7", "10.0.0.1"))
    assert scope["headers"] == headers
    assert read(scope, "forwarded").forwarded == ("for=198.51.100.9",)


@pytest.mark.parametrize(
    "headers",
    [
        [(b"herdgate-session", TICKET.encode())],
        [(b"cookie", b"a=1; " + SESSION)],
        [(b"herdgate-session", TICKET.encode()), (b"cookie", b"herdgate_session_default=x")],
        [(b"herdgate-session", b""), (b"cookie", SESSION)],
        [(b"cookie", COOKIE + b"; " + SESSION)],
    ],
)
def test_session_token_is_read_from_header_then_cookie(headers: Pairs) -> None:
    assert read(scope_of(*headers)).session == TICKET


def test_session_token_in_a_query_is_none_and_is_left_there() -> None:
    scope = scope_of(query=b"herdgate_session=" + TICKET.encode())
    assert read(scope).session is None
    assert scope["query_string"] == b"herdgate_session=" + TICKET.encode()


def test_ticket_in_the_query_is_taken_out_beside_one_in_a_header() -> None:
    scope = scope_of((b"herdgate-ticket", TICKET.encode()), query=b"a=1&herdgate_ticket=" + OTHER.encode())
    assert read(scope).ticket == TICKET
    assert scope["query_string"] == b"a=1"


names = st.sampled_from([b"herdgate-ticket", b"herdgate-session", b"cookie", b"host", b"x"])
values = st.sampled_from(
    [TICKET.encode(), COOKIE, b"a=1; " + COOKIE, COOKIE + b"; a=1", SESSION, b"\xff", b"", b";;", b"a=1"]
)
queries = st.lists(st.sampled_from([b"herdgate_ticket=" + TICKET.encode(), b"a=1", b"", b"herdgate_ticket"]))


@given(headers=st.lists(st.tuples(names, values)), pairs=queries)
def test_nothing_shown_as_a_ticket_is_ever_left(headers: Pairs, pairs: list[bytes]) -> None:
    scope = scope_of(*headers, query=b"&".join(pairs))
    read(scope)
    assert b"herdgate_ticket" not in scope["query_string"]
    for name, value in scope["headers"]:
        assert name not in (b"herdgate-ticket", b"herdgate-session")
        assert name != b"cookie" or (b"herdgate_ticket_" not in value and b"herdgate_session_" not in value)


NAMES = st.sampled_from(
    [b"cookie", b"host", b"origin", b"x-forwarded-for", b"forwarded", b"accept", b"herdgate-ticket"]
)
VALUES = st.sampled_from([b"", b"a=b", b"here.example", COOKIE, SESSION, b"\xe9", TICKET.encode()])
QUERIES = st.sampled_from([b"", b"a=1", b"herdgate_ticket=x", b"xherdgate_ticket=x"])


@given(headers=st.lists(st.tuples(NAMES, VALUES), max_size=5), query=QUERIES)
def test_the_short_way_and_the_long_way_read_the_same(headers: Pairs, query: bytes) -> None:
    short, long = scope_of(*headers, query=query), scope_of(*headers, query=query)
    plain = _read_plain(short, "x-forwarded-for")

    if plain is not None:
        assert plain == _read_any(long, "default", "x-forwarded-for")
        assert short == long == scope_of(*headers, query=query)
