"""Which tickets have been used."""

import random

from herdgate.core.spent import MINUTE_MS, SpentTickets

MINUTE = 28_000_000 * MINUTE_MS
SEED = 3


def test_ticket_is_spent_once() -> None:
    spent = SpentTickets()
    assert not spent.is_spent(1, MINUTE, 9)
    assert spent.spend(1, MINUTE, 9)
    assert spent.is_spent(1, MINUTE, 9)
    assert not spent.spend(1, MINUTE, 9)


def test_issuer_minute_and_serial_tell_tickets_apart() -> None:
    spent = SpentTickets()
    others = [(2, MINUTE, 9), (1, MINUTE + MINUTE_MS, 9), (1, MINUTE - 1, 9), (1, MINUTE, 8), (1, MINUTE, 1)]
    spent.spend(1, MINUTE, 9)
    assert not any(spent.is_spent(*other) for other in others)
    assert all(spent.spend(*other) for other in others)
    assert spent.is_spent(1, MINUTE + MINUTE_MS - 1, 9), "serials are numbered per minute, not per moment"


def test_any_order_of_serials_is_remembered_exactly() -> None:
    spent, rng = SpentTickets(), random.Random(SEED)
    expected: set[int] = set()
    for serial in rng.choices(range(3_000), k=6_000):
        assert spent.spend(1, MINUTE, serial) is (serial not in expected), f"seed {SEED}"
        expected.add(serial)
    assert {serial for serial in range(4_000) if spent.is_spent(1, MINUTE, serial)} == expected, f"seed {SEED}"


def test_one_bit_each() -> None:
    spent = SpentTickets()
    for serial in range(8_000):
        spent.spend(1, MINUTE, serial)
    assert spent.bytes == 1_000
    spent.spend(1, MINUTE, 4_000)
    assert spent.bytes == 1_000


def test_whole_minutes_are_forgotten() -> None:
    spent = SpentTickets()
    spent.spend(1, MINUTE, 7)
    spent.spend(2, MINUTE + MINUTE_MS, 8)
    spent.forget_before(MINUTE + MINUTE_MS - 1)
    assert spent.is_spent(1, MINUTE, 7)
    spent.forget_before(MINUTE + MINUTE_MS)
    assert not spent.is_spent(1, MINUTE, 7)
    assert spent.is_spent(2, MINUTE + MINUTE_MS, 8)
    assert spent.bytes == 2
    spent.forget_before(MINUTE + 2 * MINUTE_MS)
    assert spent.bytes == 0


def test_ticket_without_room_is_worth_nothing_and_takes_none() -> None:
    spent = SpentTickets(most_bytes=4)
    assert spent.spend(1, MINUTE, 15)
    assert not spent.spend(1, MINUTE, 32), "a fifth byte"
    assert not spent.spend(2, MINUTE, 16), "three more"
    assert spent.spend(2, MINUTE, 15), "two more"
    assert spent.bytes == 4
    assert spent.spend(1, MINUTE, 3), "its byte is there already"
    assert not spent.spend(3, MINUTE, 0)
    assert not spent.is_spent(3, MINUTE, 0)
    spent.forget_before(MINUTE + MINUTE_MS)
    assert spent.spend(3, MINUTE + MINUTE_MS, 0), "there is room again"
