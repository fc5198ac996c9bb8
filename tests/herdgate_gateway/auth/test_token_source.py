"""Where tokens are found, and that one shown twice is none."""

import pytest

from herdgate_gateway.auth.token_source import Place, find_token
from tests.herdgate_gateway.auth.behind import scope_of


def header(*values: str, name: str = "authorization") -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for value in values]


@pytest.mark.parametrize(
    ("value", "token"),
    [
        ("Bearer a.b.c", "a.b.c"),
        ("bearer a.b.c", "a.b.c"),
        ("BEARER   a.b.c ", "a.b.c"),
        ("a.b.c", "a.b.c"),
        ("Bearer ", "Bearer"),
        ("", None),
        ("Basic YTpi", "Basic YTpi"),
    ],
)
def test_header_with_or_without_scheme(value: str, token: str | None) -> None:
    assert find_token(scope_of(headers=header(value)), "header", "authorization") == token


def test_header_of_another_name() -> None:
    scope = scope_of(headers=[*header("Bearer other"), *header("a.b.c", name="x-token")])
    assert find_token(scope, "header", "x-token") == "a.b.c"


@pytest.mark.parametrize(
    ("query", "token"),
    [
        ("access_token=a.b.c", "a.b.c"),
        ("x=1&access_token=a.b.c&y=2", "a.b.c"),
        ("access_token=a%2Eb.c", "a.b.c"),
        ("access%5Ftoken=a.b.c", "a.b.c"),
        ("access_token=", None),
        ("access_token", None),
        ("Access_Token=a.b.c", None),
        ("", None),
        ("&".join(["x=1"] * 500) + "&access_token=a.b.c", None),
    ],
)
def test_query(query: str, token: str | None) -> None:
    assert find_token(scope_of(query=query), "query", "access_token") == token


@pytest.mark.parametrize(
    ("cookies", "token"),
    [
        (["session=a.b.c"], "a.b.c"),
        (["x=1; session=a.b.c; y=2"], "a.b.c"),
        (["x=1", "session=a.b.c"], "a.b.c"),
        (['session="a.b.c"'], "a.b.c"),
        (["sessions=a.b.c"], None),
        (["session"], None),
        ([], None),
    ],
)
def test_cookie(cookies: list[str], token: str | None) -> None:
    assert find_token(scope_of(headers=header(*cookies, name="cookie")), "cookie", "session") == token


@pytest.mark.parametrize(
    ("place", "name", "headers", "query"),
    [
        ("header", "authorization", header("Bearer good", "Bearer forged"), ""),
        ("query", "access_token", [], "access_token=good&access_token=forged"),
        ("query", "access_token", [], "access_token=good&access%5ftoken=forged"),
        ("cookie", "session", header("session=good; session=forged", name="cookie"), ""),
        ("cookie", "session", header("session=good", "session=forged", name="cookie"), ""),
    ],
)
def test_two_tokens_are_none(place: Place, name: str, headers: list[tuple[bytes, bytes]], query: str) -> None:
    """The worker might read the other one."""
    assert find_token(scope_of(headers=headers, query=query), place, name) is None
