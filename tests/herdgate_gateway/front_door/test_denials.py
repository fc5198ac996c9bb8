"""The template of a denial gives what the long way gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate.core.answers import STATUS, Denied, Quota, Reason
from herdgate.denial import challenge, http_denial
from herdgate_gateway.front_door.answers import http_answer
from herdgate_gateway.front_door.denials import denial_answer

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


@pytest.mark.parametrize("status", range(400, 600))
def test_every_status_has_its_line(status: int) -> None:
    assert denial_answer(Denied("rate", 1.0, "1.x"), status).startswith(b"HTTP/1.1 %d " % status)
