"""What a refusal looks like on the wire."""

import json
import math
from http.cookies import SimpleCookie
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate.core.answers import STATUS, Denied, GateReason, LateReason, Quota, Reason
from herdgate.denial import challenge, close_reason, http_denial, our_cookie, read_statuses, retry_ms

TICKET = "1.AQGLz-Voe96tvu8AAAAqukUzCjjfpdqAxA"
REASONS: tuple[Reason, ...] = (*get_args(GateReason), *get_args(LateReason))


def headers_of(denied: Denied) -> dict[str, str]:
    pairs = http_denial(denied)[0]
    headers = {name.decode(): value.decode() for name, value in pairs}
    assert len(headers) == len(pairs)
    return headers


@pytest.mark.parametrize(
    ("retry_s", "milliseconds", "seconds"),
    [(7.34, 7340, 8), (0.0, 1, 1), (1e-9, 1, 1), (1.0, 1000, 1), (1.0001, 1001, 2), (600, 600_000, 600)],
)
def test_retry_time_is_told_rounded_up_in_every_place(retry_s: float, milliseconds: int, seconds: int) -> None:
    denied = Denied("rate", retry_s)
    headers = headers_of(denied)
    assert retry_ms(denied) == milliseconds
    assert headers["herdgate-retry-ms"] == str(milliseconds)
    assert headers["retry-after"] == str(seconds)
    assert json.loads(http_denial(denied)[1])["retry_ms"] == milliseconds
    assert json.loads(close_reason(denied))["retry_ms"] == milliseconds


@given(retry_s=st.floats(0, 1200))
def test_nobody_is_told_to_come_too_early(retry_s: float) -> None:
    denied = Denied("rate", retry_s)
    told = retry_ms(denied)
    assert told is not None
    assert retry_s * 1000 <= told <= retry_s * 1000 + 1
    assert int(headers_of(denied)["retry-after"]) * 1000 >= told


def test_http_denial_carries_everything() -> None:
    headers, body = http_denial(Denied("rate", 7.34, TICKET))
    content = {"error": "a crowd is being let in, in order", "reason": "rate", "retry_ms": 7340, "ticket": TICKET}
    assert json.loads(body) == content
    assert headers == [
        (b"content-type", b"application/json"),
        (b"cache-control", b"no-store"),
        (b"connection", b"close"),
        (b"retry-after", b"8"),
        (b"herdgate-retry-ms", b"7340"),
        (b"herdgate-ticket", TICKET.encode()),
        (b"content-length", str(len(body)).encode()),
    ]


def test_denial_without_a_time_says_never() -> None:
    denied = Denied("origin")
    assert not headers_of(denied).keys() & {"retry-after", "herdgate-retry-ms", "herdgate-ticket"}
    content = json.loads(http_denial(denied)[1])
    assert (content["retry_ms"], content["ticket"]) == (None, None)
    assert close_reason(denied) == '{"retry_ms":null}'


def test_client_rate_names_its_quota() -> None:
    headers = headers_of(Denied("client_rate", 2.5, quota=Quota(60, 60)))
    assert headers["ratelimit-policy"] == '"client";q=60;w=60'
    assert headers["ratelimit"] == '"client";r=0;t=3'


def test_a_401_says_how_to_authenticate_and_nothing_else_does() -> None:
    assert challenge(401) == [(b"www-authenticate", b"Bearer")]
    assert challenge(401, 'Basic realm="caf\xe9"') == [(b"www-authenticate", b'Basic realm="caf\xe9"')]
    assert challenge(403, "Basic") == challenge(429) == []


def test_other_denials_name_no_quota() -> None:
    assert not [name for name in headers_of(Denied("rate", 1.0)) if name.startswith("ratelimit")]


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_has_a_status_and_words_of_its_own(reason: Reason) -> None:
    content = json.loads(http_denial(Denied(reason, 1.0))[1])
    assert content["reason"] == reason
    assert 400 <= STATUS[reason] <= 599
    others = [json.loads(http_denial(Denied(other, 1.0))[1])["error"] for other in REASONS if other != reason]
    assert content["error"] not in others


@given(retry_s=st.one_of(st.none(), st.floats(0, 1e9)), ticket=st.sampled_from([None, TICKET]))
def test_close_reason_fits_a_close_frame(retry_s: float | None, ticket: str | None) -> None:
    text = close_reason(Denied("rate", retry_s, ticket))
    assert len(text.encode()) <= 123
    assert json.loads(text).get("ticket") == ticket


def test_close_reason_is_compact() -> None:
    assert close_reason(Denied("rate", 7.34, TICKET)) == f'{{"retry_ms":7340,"ticket":"{TICKET}","reconnect":true}}'


def test_statuses_replace_the_usual_ones_one_by_one() -> None:
    statuses = read_statuses({"rate": 503, "origin": 404})
    assert statuses == {**STATUS, "rate": 503, "origin": 404}
    assert read_statuses({}) == STATUS
    assert STATUS["rate"] == 429


@pytest.mark.parametrize("status", [399, 600, -1, True, 429.0, math.nan, "429", None, 10**400])
def test_status_that_is_no_refusal_is_an_error(status: int) -> None:
    with pytest.raises(ValueError, match=r"statuses\['rate'\]: got .*; write an HTTP status from 400 to 599"):
        read_statuses({"rate": status})


@pytest.mark.parametrize("status", [400, 599])
def test_statuses_at_the_ends_of_the_range_are_taken(status: int) -> None:
    assert read_statuses({"rate": status})["rate"] == status


def cookie_of(age_s: float, *, secure: bool = True, same_site: bool = True) -> str:
    name = "herdgate_ticket_default"
    return our_cookie(name, TICKET, age_s=age_s, path="/ws", secure=secure, same_site=same_site).decode()


def test_cookie_lasts_as_long_as_it_is_worth_something() -> None:
    cookie = SimpleCookie(cookie_of(67.34))["herdgate_ticket_default"]
    assert cookie.value == TICKET
    assert (cookie["path"], cookie["max-age"], cookie["httponly"]) == ("/ws", "68", True)


@pytest.mark.parametrize(
    ("secure", "same_site", "end"),
    [
        (True, True, "; SameSite=Lax; Secure"),
        (True, False, "; SameSite=None; Secure"),
        (False, True, "; SameSite=Lax"),
        (False, False, "; SameSite=Lax"),
    ],
)
def test_cookie_travels_across_sites_only_over_tls(secure: bool, same_site: bool, end: str) -> None:
    cookie = cookie_of(61, secure=secure, same_site=same_site)
    assert cookie == f"herdgate_ticket_default={TICKET}; Path=/ws; Max-Age=61; HttpOnly{end}"
