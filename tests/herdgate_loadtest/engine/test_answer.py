"""What a refusal says."""

import json

import pytest

from herdgate_loadtest.engine.answer import NO_ANSWER, Denial, denial_of_close, denial_of_response


def body(**fields: object) -> bytes:
    return json.dumps({"error": "come later", **fields}).encode()


@pytest.mark.parametrize(
    ("headers", "content", "delay_s"),
    [
        ({"herdgate-retry-ms": "7340", "retry-after": "8"}, body(retry_ms=9000), 7.34),
        ({"retry-after": "8"}, body(retry_ms=7340), 7.34),
        ({"retry-after": "8"}, b"", 8.0),
        ({"retry-after": "0"}, b"", 0.0),
        ({"herdgate-retry-ms": "soon", "retry-after": "8"}, b"", 8.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, b"", None),
        ({"retry-after": "-1"}, b"", None),
        ({"retry-after": "nan"}, b"", None),
        ({"retry-after": "inf"}, b"", None),
        ({"retry-after": "1e9"}, b"", None),
        ({}, body(retry_ms=True), None),
        ({}, body(retry_ms=None), None),
        ({}, body(retry_ms=[1]), None),
        ({}, body(retry_ms=10**400), None),
        ({}, b"", None),
    ],
)
def test_most_precise_credible_delay_wins(headers: dict[str, str], content: bytes, delay_s: float | None) -> None:
    assert denial_of_response(429, headers, content).delay_s == delay_s


@pytest.mark.parametrize(
    ("headers", "content", "ticket"),
    [
        ({"herdgate-ticket": "1.abc"}, body(ticket="1.xyz"), "1.abc"),
        ({}, body(ticket="1.xyz"), "1.xyz"),
        ({"herdgate-ticket": ""}, body(), None),
        ({}, body(ticket="two words"), None),
        ({}, body(ticket="a\r\nInjected: header"), None),
        ({}, body(ticket="\u00fc"), None),
        ({}, body(ticket="x" * 513), None),
        ({}, body(ticket=7), None),
    ],
)
def test_ticket_is_taken_only_if_it_can_be_shown(headers: dict[str, str], content: bytes, ticket: str | None) -> None:
    assert denial_of_response(429, headers, content).ticket == ticket


@pytest.mark.parametrize("content", [b"[1, 2]", b"not json", b"{half", b"{" * 100_000, b'{"a": "\xff"}', b'"text"'])
def test_foreign_body_says_nothing(content: bytes) -> None:
    assert denial_of_response(503, {}, content) == Denial(status=503)


@pytest.mark.parametrize(
    ("denial", "label"),
    [
        (denial_of_response(429, {}, body(reason="client_rate")), "429 client_rate"),
        (denial_of_response(503, {}, b""), "503"),
        (denial_of_response(429, {}, body(reason="any text, at length")), "429"),
        (denial_of_response(429, {}, body(reason="x" * 33)), "429"),
        (denial_of_close(1013, ""), "close 1013"),
        (NO_ANSWER, "0"),
    ],
)
def test_label_is_short_and_only_of_words(denial: Denial, label: str) -> None:
    assert denial.label == label


@pytest.mark.parametrize("code", [1012, 1013])
def test_close_reason_carries_delay_and_ticket(code: int) -> None:
    assert denial_of_close(code, '{"retry_ms":7340,"ticket":"1.abc"}') == Denial(7.34, "1.abc", code)


@pytest.mark.parametrize("reason", ["", "going away", '{"retry_ms":"x"}', "{"])
def test_other_close_reasons_say_nothing(reason: str) -> None:
    assert denial_of_close(1013, reason) == Denial(status=1013)
