"""The templates of denials give what the long way gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate.core.answers import STATUS, Denied, Quota, Reason
from herdgate.denial import TRY_AGAIN_LATER, TicketCookie, challenge, close_reason, http_denial
from herdgate_gateway.front_door.answers import close_answer, http_answer
from herdgate_gateway.front_door.denials import close_denial, denial_answer

tickets = st.none() | st.text("abcdefghijklmnopqrstuvwxyz-_0123456789.", min_size=1, max_size=80)
seconds = st.none() | st.floats(0, 1e6) | st.sampled_from([0.001, 0.9999, 1.0, 7_654_321.001])


@given(
    reason=st.sampled_from(sorted(STATUS)),
    retry_s=seconds,
    ticket=tickets,
    quota=st.none() | st.just(Quota(5, 10)),
    status=st.sampled_from([401, 403, 429, 503, 599]),
)
def test_template_and_long_way_give_the_same_bytes(
    reason: Reason, retry_s: float | None, ticket: str | None, quota: Quota | None, status: int
) -> None:
    denied = Denied(reason, retry_s, ticket, quota=quota)
    headers, body = http_denial(denied)
    assert denial_answer(denied, status) == http_answer(status, [*headers, *challenge(status)], body)


cookies = st.builds(
    TicketCookie,
    name=st.just("herdgate_ticket_chat"),
    path=st.sampled_from(["/", "/ws", "/a%20b", "/100%"]),
    secure=st.booleans(),
    same_site=st.booleans(),
    grace_s=st.floats(0, 3_600),
)


@given(
    denied=st.builds(
        Denied, reason=st.just("rate"), retry_s=seconds, ticket=tickets.filter(lambda text: len(text or "") < 40)
    ),
    key=st.sampled_from([b"", b"dGhlIHNhbXBsZSBub25jZQ==", b"AAAAAAAAAAAAAAAAAAAAAA=="]),
    subprotocol=st.none() | st.text("chat%1!#$&'*+-.^_`|~", min_size=1, max_size=20),
    cookie=cookies,
)
def test_template_and_long_way_close_with_the_same_bytes(
    denied: Denied, key: bytes, subprotocol: str | None, cookie: TicketCookie
) -> None:
    long_way = close_answer(key, subprotocol, cookie.headers(denied), TRY_AGAIN_LATER, close_reason(denied))
    assert close_denial(denied, key, subprotocol, cookie) == long_way


@pytest.mark.parametrize("status", range(400, 600))
def test_every_status_has_its_line(status: int) -> None:
    assert denial_answer(Denied("rate", 1.0, "1.x"), status).startswith(b"HTTP/1.1 %d " % status)
