"""Connection ids: where they are read, what is one, and how they are drawn."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate import ConfigurationError
from herdgate_gateway.connection_ids import ConnectionIds, Place, in_cookie, in_header, in_path, in_query
from herdgate_gateway.headers import Fault

LONGEST = "x" * 128


def scope(path: str = "/chat/abc", query: str = "", headers: list[tuple[str, str]] | None = None) -> dict[str, Any]:
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers or []]
    return {"path": path, "raw_path": path.encode("latin-1"), "query_string": query.encode("latin-1"), "headers": pairs}


def found(place: Place, asked: dict[str, Any]) -> str | None:
    """The id; None where the arrival is refused for it."""
    answer = ConnectionIds(place).find(asked)
    if isinstance(answer, str):
        return answer
    assert answer.status == 400
    return None


@pytest.mark.parametrize(
    ("segment", "path", "expected"),
    [
        (1, "/chat/abc", "chat"),
        (2, "/chat/abc", "abc"),
        (2, "/chat/abc/more", "abc"),
        (2, "/chat/abc/", "abc"),
        (2, "/chat/a%2Fb", "a/b"),
        (2, "/chat/a%2fb%3A", "a/b:"),
        (1, "/chat%2Fabc", "chat/abc"),
        (2, "/chat%2Fabc", None),
        (2, f"/chat/{LONGEST}", LONGEST),
        (2, f"/chat/{LONGEST}x", None),
        (3, "/chat/abc", None),
        (2, "/chat", None),
        (2, "/chat/", None),
        (1, "/", None),
        (2, "/chat/a%20b", None),
        (2, "/chat/a%00", None),
        (2, "/chat/a%0D%0Ax:1", None),
        (2, "/chat/%C3%A9", None),
        (2, "/chat/%E9", None),
        (2, "/chat/%7F", None),
        (2, "//chat/abc", None),
        (2, "/chat//abc", None),
        (1, "/chat//abc", None),
        (2, "/./chat/abc", None),
        (2, "/chat/abc/../def", None),
        (2, "/chat/%2e%2E/abc", None),
        (2, "/chat/..", None),
    ],
)
def test_a_segment_of_the_path(segment: int, path: str, expected: str | None) -> None:
    assert found(in_path(segment), scope(path)) == expected


def test_a_path_is_taken_from_a_server_that_keeps_no_raw_one() -> None:
    assert found(in_path(2), {**scope(), "path": "/chat/a:b", "raw_path": None}) == "a:b"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("id=abc", "abc"),
        ("a=1&id=abc&b=2", "abc"),
        ("id=a%2Bb", "a+b"),
        ("i%64=abc", "abc"),
        ("id=abc&id=abc", "abc"),
        (f"id={LONGEST}", LONGEST),
        (f"id={LONGEST}x", None),
        ("", None),
        ("id", None),
        ("id=", None),
        ("ID=abc", None),
        ("id=abc&id=def", None),
        ("id=abc&id=", None),
        ("id=a+b", None),
        ("id=%C3%A9", None),
        ("id=\xe9", None),
        ("id=abc" + "&x=1" * 200, None),
    ],
)
def test_a_parameter_of_the_query(query: str, expected: str | None) -> None:
    assert found(in_query("id"), scope(query=query)) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["abc"], "abc"),
        ([" abc\t"], "abc"),
        (["abc", "abc"], "abc"),
        ([LONGEST], LONGEST),
        ([f"{LONGEST}x"], None),
        ([], None),
        ([""], None),
        (["abc", "def"], None),
        (["abc", ""], None),
        (["abc, def"], None),
        (["a b"], None),
        (["caf\xe9"], None),
    ],
)
@pytest.mark.parametrize("name", ["X-Id", "herdgate-connection-id"])
def test_a_header(name: str, values: list[str], expected: str | None) -> None:
    asked = scope(headers=[("x-other", "1"), *((name.lower(), value) for value in values)])

    assert found(in_header(name), asked) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["id=abc"], "abc"),
        (["a=1; id=abc;b=2"], "abc"),
        (["a=1", "id=abc"], "abc"),
        (['id="abc"'], "abc"),
        (["id=a=b"], "a=b"),
        (["id=abc; id=abc"], "abc"),
        (["id=abc; id=def"], None),
        (["id=abc", "id=def"], None),
        ([], None),
        (["id="], None),
        (["id"], None),
        (["ID=abc"], None),
        (["xid=abc"], None),
        (["id=a b"], None),
        (["id=caf\xe9"], None),
        ([f"id={LONGEST}x"], None),
    ],
)
def test_a_cookie(values: list[str], expected: str | None) -> None:
    assert found(in_cookie("id"), scope(headers=[("cookie", value) for value in values])) == expected


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (in_path(2), "segment 2 of the path"),
        (in_query("id"), "the query parameter id"),
        (in_header("x-id"), "the header x-id"),
        (in_cookie("id"), "the cookie id"),
    ],
)
def test_a_fault_says_in_one_line_where_the_id_is_expected(place: Place, told: str) -> None:
    fault = ConnectionIds(place).find(scope("/"))

    assert isinstance(fault, Fault)
    assert f"in {told}: " in fault.text
    assert "\n" not in fault.text


@given(value=st.text(st.characters(max_codepoint=0x180), max_size=140))
def test_what_is_found_can_stand_in_a_header(value: str) -> None:
    encoded = "".join(f"%{byte:02x}" for byte in value.encode())
    answer = found(in_query("id"), scope(query=f"id={encoded}"))

    assert answer == (value if re.fullmatch(r"[!-~]{1,128}", value) else None)


def test_without_a_place_ids_are_drawn() -> None:
    asked = []

    def token_bytes(count: int) -> bytes:
        asked.append(count)
        return bytes([0xFB, 0xFF]) * (count // 2)

    assert ConnectionIds(token_bytes=token_bytes).find(scope()) == "-__7__v_-__7__v_-__7_w"
    assert asked == [16]


def test_drawn_ids_differ_and_are_22_characters_that_fit_into_a_url() -> None:
    ids = ConnectionIds()
    drawn = [ids.find(scope()) for _ in range(1_000)]

    assert len(set(drawn)) == 1_000
    assert all(isinstance(one, str) and re.fullmatch(r"[A-Za-z0-9_-]{22}", one) for one in drawn)


@pytest.mark.parametrize("segment", [0, -1, 1.5, True, "2", None])
def test_a_segment_that_is_no_number_from_1_is_an_error(segment: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^path: got .*; write the number of a path segment, 1 or more$"):
        in_path(segment)
