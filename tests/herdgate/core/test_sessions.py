"""Session tokens: whose they are, and how long they are good."""

import re

import pytest

from herdgate.core.errors import ConfigurationError
from herdgate.core.sessions import SessionTokens
from herdgate.core.tickets import TICKET_PATTERN, Ticket, TicketSigner

SECRET, OTHER = b"a secret for tests only", b"another secret for tests"
NOW = 1_700_000_000.0


def tokens(*secrets: bytes, route: str = "chat", ttl_s: float = 3_600) -> SessionTokens:
    return SessionTokens(secrets or (SECRET,), route=route, ttl_s=ttl_s)


@pytest.mark.parametrize(("age_s", "good"), [(0, True), (3_599, True), (3_600, True), (3_601, False), (1e9, False)])
def test_token_is_good_for_its_time(age_s: float, good: bool) -> None:
    assert tokens().is_good(tokens().give(NOW), NOW + age_s) is good


def test_token_of_a_gateway_whose_clock_is_ahead_is_good() -> None:
    assert tokens().is_good(tokens().give(NOW + 60), NOW)


def test_token_is_good_as_often_as_it_is_shown() -> None:
    text = tokens().give(NOW)
    assert all(tokens().is_good(text, NOW + second) for second in range(100))


def test_token_of_another_route_or_secret_is_not_good() -> None:
    text = tokens().give(NOW)
    assert not tokens(route="feed").is_good(text, NOW)
    assert not tokens(OTHER).is_good(text, NOW)
    assert tokens(OTHER, SECRET).is_good(text, NOW), "rotated"


def test_ticket_is_no_session_token_and_the_other_way_round() -> None:
    signer = TicketSigner([SECRET], route="chat", klass="resume")
    assert signer.read(tokens().give(NOW)) is None
    assert not tokens().is_good(signer.sign(Ticket("hint", int(NOW * 1000), 0, 0)), NOW)


@pytest.mark.parametrize("text", ["", "1.", "x" * 36, "1." + "A" * 34])
def test_anything_else_is_not_good(text: str) -> None:
    assert not tokens().is_good(text, NOW)


def test_token_looks_like_a_ticket_so_that_logs_blank_it_out() -> None:
    assert re.fullmatch(TICKET_PATTERN, tokens().give(NOW))


def test_short_secret_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="secrets"):
        tokens(b"short")
