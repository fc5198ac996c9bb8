"""What a server says about coming back, and what of it is believed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_client.told import (
    LONGEST_TOLD_S,
    NOTHING,
    Told,
    denial_reason,
    token_of,
    told_by_close,
    told_by_headers,
)

NOW = "Mon, 30 Nov 2026 14:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"Herdgate-Retry-Ms": "7340", "Retry-After": "8"}, Told(7.34, exact=True)),
        ({"Herdgate-Retry-Ms": "0"}, Told(0.0, exact=True)),
        ({"Herdgate-Retry-Ms": "7340", "Herdgate-Ticket": "1.abc"}, Told(7.34, exact=True, ticket="1.abc")),
        ({"Retry-After": "8"}, Told(8.0)),
        ({"Retry-After": "0"}, Told(0.0)),
        ({"Retry-After": "86400"}, Told(86_400.0)),
        ({"Retry-After": "8", "Herdgate-Ticket": "1.abc"}, Told(8.0, ticket="1.abc")),
        ({"Herdgate-Retry-Ms": "soon", "Retry-After": "8"}, Told(8.0)),
        ({"Retry-After": "Mon, 30 Nov 2026 14:00:09 GMT", "Date": NOW}, Told(9.0)),
        ({"Retry-After": "Monday, 30-Nov-26 14:00:09 GMT", "Date": NOW}, Told(9.0)),
        ({"Retry-After": "Mon, 30 Nov 2026 13:00:00 GMT", "Date": NOW}, Told(0.0)),
        ({}, NOTHING),
    ],
)
def test_most_precise_delay_wins(headers: dict[str, str], told: Told) -> None:
    assert told_by_headers(headers) == told


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "Mon, 30 Nov 2026 14:00:09 GMT"},
        {"Retry-After": "Mon, 30 Nov 2026 14:00:09 GMT", "Date": "today"},
        {"Retry-After": "Mon, 30 Nov 2026 14:00:09 -0000", "Date": NOW},
        {"Retry-After": "Mon, 30 Nov 2036 14:00:00 GMT", "Date": NOW},
        {"Retry-After": "Mon, 99 Nov 2026 14:00:00 GMT", "Date": NOW},
        *(
            {"Retry-After": text, "Date": NOW}
            for text in ("-1", "nan", "inf", "1e3", "8.5", "", " ", "86401", "9" * 5000)
        ),
        *({"Herdgate-Retry-Ms": text} for text in ("-1", "nan", "1_0", "\u0663", "86400001", "9" * 5000, "0x10")),
    ],
)
def test_nonsense_counts_as_not_told(headers: dict[str, str]) -> None:
    assert told_by_headers(headers) == NOTHING


@pytest.mark.parametrize("code", [1012, 1013])
def test_close_tells_delay_and_ticket(code: int) -> None:
    assert told_by_close(code, '{"retry_ms":7340,"ticket":"1.abc"}') == Told(7.34, exact=True, ticket="1.abc")
    assert told_by_close(code, '{"retry_ms":0.5}') == Told(0.0005, exact=True)
    assert told_by_close(code, '{"retry_ms":null,"ticket":"1.abc"}') == Told(ticket="1.abc")


@pytest.mark.parametrize("code", [1000, 1001, 1006, 1008, 1011, 4000])
def test_other_codes_tell_nothing(code: int) -> None:
    assert told_by_close(code, '{"retry_ms":7340,"ticket":"1.abc"}') == NOTHING


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-Infinity", "-1", "1e999", "9" * 110, "true", '"7340"', "[7340]", "{}", "31536000000"]
)
def test_nonsense_in_a_close_counts_as_not_told(value: str) -> None:
    assert told_by_close(1013, f'{{"retry_ms":{value}}}') == NOTHING


@pytest.mark.parametrize("reason", ["", "restarting", "{", "[1]", "7", '{"retry_ms', "[" * 120, "\u00e9"])
def test_reason_of_another_kind_counts_as_not_told(reason: str) -> None:
    assert told_by_close(1012, reason) == NOTHING


@given(st.text(max_size=600))
def test_token_is_taken_only_if_it_can_be_shown(text: str) -> None:
    assert token_of(text) == (text if 0 < len(text) <= 512 and all("!" <= sign <= "~" for sign in text) else None)


@pytest.mark.parametrize("value", [None, 7, True, ["1.abc"], {"a": 1}])
def test_token_is_a_text(value: object) -> None:
    assert token_of(value) is None


@given(st.dictionaries(st.sampled_from(["Herdgate-Retry-Ms", "Retry-After", "Date", "Herdgate-Ticket"]), st.text()))
def test_any_headers_can_be_read(headers: dict[str, str]) -> None:
    told = told_by_headers(headers)
    assert told.delay_s is None or 0 <= told.delay_s <= LONGEST_TOLD_S


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists), st.text())
def test_any_close_can_be_read(retry_ms: object, ticket: str) -> None:
    told = told_by_close(1013, json.dumps({"retry_ms": retry_ms, "ticket": ticket}))
    assert told.delay_s is None or 0 <= told.delay_s <= LONGEST_TOLD_S


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"error": "full", "reason": "full", "retry_ms": 1}', "full"),
        (b'{"reason": "two words"}', ""),
        (b'{"reason": "' + b"x" * 33 + b'"}', ""),
        (b'{"reason": "rate"}' + b" " * 4096, ""),
        (b'{"reason": 7}', ""),
        (b"\xff\xfe", ""),
        (b"", ""),
        (None, ""),
    ],
)
def test_reason_of_a_denial_is_a_word(body: bytes | None, reason: str) -> None:
    assert denial_reason(body) == reason
