"""Tickets: what is signed is read, and nothing else is."""

import hmac
import re
import string
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate.core.tickets import LEAST_SECRET_BYTES, TICKET_PATTERN, Ticket, TicketSigner

SECRET, OLD_SECRET = b"sixteen bytes of", b"an older secret.."
SIGNER = TicketSigner([SECRET], fleet="fleet", route="route", klass="class")
TICKET = Ticket("firm", 1_700_000_000_123, 0xDEADBEEF, 42)
TEXT = SIGNER.sign(TICKET)
ALPHABET = string.ascii_letters + string.digits + "-_"

tickets = st.builds(
    Ticket,
    kind=st.sampled_from(["hint", "firm"]),
    at_ms=st.integers(0, (1 << 48) - 1),
    issuer=st.integers(0, (1 << 32) - 1),
    serial=st.integers(0, (1 << 32) - 1),
)


@given(ticket=tickets)
def test_ticket_comes_back_as_it_was_signed(ticket: Ticket) -> None:
    text = SIGNER.sign(ticket)
    assert SIGNER.read(text) == ticket
    assert len(text) == 36
    assert re.fullmatch(TICKET_PATTERN, text)


@given(one=tickets, other=tickets)
def test_two_tickets_never_read_alike(one: Ticket, other: Ticket) -> None:
    assert (SIGNER.sign(one) == SIGNER.sign(other)) == (one == other)


def test_any_other_bit_fails() -> None:
    raw = urlsafe_b64decode(TEXT[2:] + "==")
    assert len(raw) == 25
    for bit in range(200):
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        assert SIGNER.read("1." + urlsafe_b64encode(changed).decode()[:34]) is None


def test_any_other_character_fails() -> None:
    """The last one too, of which four bits say nothing: a ticket has one spelling."""
    for place, character in enumerate(TEXT):
        for other in ALPHABET + "=+/ .\n\0é":
            if other != character:
                assert SIGNER.read(TEXT[:place] + other + TEXT[place + 1 :]) is None, (place, other)


@pytest.mark.parametrize(
    "text",
    ["", "1.", TEXT[:-1], TEXT + "A", TEXT + "\n", " " + TEXT, TEXT + "==", TEXT[2:], TEXT.lower(), '"' + TEXT + '"'],
)
def test_other_lengths_and_shapes_fail(text: str) -> None:
    assert SIGNER.read(text) is None


@given(text=st.one_of(st.text(max_size=80), st.text(alphabet=ALPHABET, min_size=34, max_size=34).map("1.".__add__)))
def test_text_that_nobody_signed_fails(text: str) -> None:
    assert SIGNER.read(text) is None


@pytest.mark.parametrize(
    "other",
    [
        TicketSigner([OLD_SECRET], fleet="fleet", route="route", klass="class"),
        TicketSigner([SECRET + b"."], fleet="fleet", route="route", klass="class"),
        TicketSigner([SECRET], fleet="fleet", route="other", klass="class"),
        TicketSigner([SECRET], fleet="other", route="route", klass="class"),
        TicketSigner([SECRET], fleet="fleet", route="route", klass="other"),
        TicketSigner([SECRET], fleet="fleetroute", route="", klass="class"),
        TicketSigner([SECRET], fleet="", route="fleet", klass="routeclass"),
        TicketSigner([SECRET]),
    ],
    ids=["secret", "longer secret", "route", "fleet", "class", "names run together", "names moved", "no names"],
)
def test_ticket_of_another_secret_fleet_route_or_class_fails(other: TicketSigner) -> None:
    assert other.read(TEXT) is None
    assert SIGNER.read(other.sign(TICKET)) is None


def test_old_secret_still_verifies_while_the_new_one_signs() -> None:
    old, new = TicketSigner([OLD_SECRET]), TicketSigner([SECRET])
    rotating = TicketSigner([SECRET, OLD_SECRET])

    assert rotating.read(old.sign(TICKET)) == TICKET
    assert rotating.read(new.sign(TICKET)) == TICKET
    assert rotating.sign(TICKET) == new.sign(TICKET)
    assert old.read(rotating.sign(TICKET)) is None


def test_secret_put_second_first_lets_gateways_change_one_after_the_other() -> None:
    not_yet, changed = TicketSigner([OLD_SECRET, SECRET]), TicketSigner([SECRET, OLD_SECRET])
    assert changed.read(not_yet.sign(TICKET)) == TICKET
    assert not_yet.read(changed.sign(TICKET)) == TICKET


@given(secret=st.binary(min_size=LEAST_SECRET_BYTES, max_size=200))
def test_code_is_hmac_sha_256_of_the_fields_and_the_names(secret: bytes) -> None:
    text = TicketSigner([secret], fleet="f", route="r", klass="c").sign(TICKET)
    raw = urlsafe_b64decode(text[2:] + "==")
    assert raw[15:] == hmac.digest(secret, raw[:15] + b"\0f\0r\0c", "sha256")[:10]


def test_fields_are_kind_slot_issuer_and_serial() -> None:
    raw = urlsafe_b64decode(TEXT[2:] + "==")
    slot, issuer, serial = (int.from_bytes(raw[first:last]) for first, last in ((1, 7), (7, 11), (11, 15)))
    assert (raw[0], slot, issuer, serial) == (1, *TICKET[1:])
    assert urlsafe_b64decode(SIGNER.sign(TICKET._replace(kind="hint"))[2:] + "==")[0] == 0


def test_shortest_secret_is_taken() -> None:
    signer = TicketSigner((b"x" * LEAST_SECRET_BYTES,))
    assert signer.read(signer.sign(TICKET)) == TICKET


def test_text_of_a_ticket_is_the_same_in_every_release() -> None:
    assert TEXT == "1.AQGLz-Voe96tvu8AAAAqukUzCjjfpdqAxA"
