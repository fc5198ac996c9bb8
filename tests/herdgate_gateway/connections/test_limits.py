"""Ids and attrs: what may be one, and the line that says why something is none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_gateway.connection_ids import ConnectionIds, in_header
from herdgate_gateway.connections.limits import MOST_ATTRS, canonical, check_attrs, check_id, read_attrs
from herdgate_gateway.errors import ConfigurationError


@pytest.mark.parametrize("name", ["a", "x" * 128, "!~/,%#?", "C#1"])
def test_id_may_be_any_printable_ascii(name: str) -> None:
    assert check_id(name) == name


@pytest.mark.parametrize("name", ["", " ", "a b", "x" * 129, "ä", "a\n", "\x7f"])
def test_what_is_no_id_is_told(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"connection id: got .*; write 1 to 128 characters"):
        check_id(name)


@given(st.text(max_size=3) | st.text(st.characters(max_codepoint=0x7F), min_size=126, max_size=130))
def test_an_id_is_what_the_gateway_takes_for_one(name: str) -> None:
    shown = name.strip()
    found = ConnectionIds(in_header("x")).find({"headers": [(b"x", shown.encode("latin-1", "replace"))]})
    is_one = isinstance(found, str)
    try:
        check_id(shown)
    except ConfigurationError:
        assert not is_one or found != shown
    else:
        assert is_one


@pytest.mark.parametrize(
    "attrs",
    [{}, {"t": "ä\n", "n": -(10**37), "yes": True, "list": [1, [], {"x": [False]}], "deep": {"er": {}}}],
    ids=str,
)
def test_attrs_come_back_as_they_were_and_are_a_copy(attrs: dict[str, Any]) -> None:
    held = check_attrs(attrs)
    assert held == attrs
    assert held is not attrs
    assert canonical(read_attrs(canonical(attrs))) == canonical(attrs)


def test_attrs_may_have_thirty_levels_with_something_in_the_last_one() -> None:
    text = '{"a":' + "[" * 29 + '"x"' + "]" * 29 + "}"
    assert canonical(read_attrs(text)) == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "--attrs: got ''; write a JSON object"),
        ("{", "--attrs: got {; write a JSON object"),
        ("[1]", "--attrs: got [1]; write a JSON object"),
        ("null", "--attrs: got None; write a JSON object"),
        ('{"a": null}', "got null at a; leave it out, or write it as a text"),
        ('{"a": 1.5}', "got 1.5, a fraction, at a; write it as a text"),
        ('{"b": {"a": [0, 1e3]}}', "got 1000.0, a fraction, at b.a[1]; write it as a text"),
        ('{"a": NaN}', "got nan, no number, at a; write it as a text"),
        ('{"a": ' + "9" * 39 + "}", "got a number of more than 38 digits at a; write it as a text"),
        ('{"\\u001b[1m": null}', "got null at \\x1b[1m; leave it out"),
        ('{"' + "x" * 999 + '": -1.7976931348623157e+308}', "a fraction, at ..." + "x" * 27 + "; write it as a text"),
        ('{"a": ' + "9" * 5_000 + "}", "write a JSON object"),
        ('{"a": "\\ud800"}', "can't encode character"),
        ('{"": 1}', "give each value a name"),
        ('{"a": [{"": 1}]}', "give each value a name"),
        ('{"a": ' + "[" * 30 + "]" * 30 + "}", "keep them to 30 levels"),
        ('{"a": ' + "[" * 30 + "1" + "]" * 30 + "}", "keep them to 30 levels"),
        ('{"a": ' + "[" * 100_000, "write a JSON object"),
        ('{"a": "' + "ä" * (MOST_ATTRS // 2) + '"}', "16,392 bytes; keep them to 16,384 bytes"),
    ],
    ids=lambda value: value[:24],
)
def test_what_is_no_attrs_is_told_in_one_line(text: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_attrs(text, "--attrs")
    line = str(raised.value)
    assert line.startswith("--attrs: got ")
    assert told in line
    assert line.isprintable()


def test_attrs_of_just_the_size_are_taken() -> None:
    attrs = {"a": "x" * (MOST_ATTRS - len('{"a":""}'))}
    assert check_attrs(attrs) == attrs


def test_values_from_code_that_no_table_holds_are_told() -> None:
    with pytest.raises(ConfigurationError, match="not bytes; write texts, whole numbers"):
        check_attrs({"a": b""})


@pytest.mark.parametrize("name", [1, None, True])
def test_names_from_code_are_texts_too(name: object) -> None:
    with pytest.raises(ConfigurationError, match="a name that is none"):
        check_attrs({name: 1})


def test_canonical_tells_true_from_one_and_nothing_of_order() -> None:
    assert canonical({"a": True}) != canonical({"a": 1})
    assert canonical({"a": 1, "b": 2}) == canonical({"b": 2, "a": 1})
