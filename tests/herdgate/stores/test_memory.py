"""The calendar in this process."""

import math
import random

import pytest

from herdgate.core.answers import Queued
from herdgate.core.calendar import Calendar
from herdgate.core.clients import LOCAL
from herdgate.core.errors import ConfigurationError
from herdgate.core.grant import Grant
from herdgate.core.limits import Limits
from herdgate.core.tickets import Ticket
from herdgate.core.unlimited import Unlimited
from herdgate.stores.memory import MemoryStore

SEED = 1
ORIGIN_MS = 1_700_000_000_000
NEWCOMER = Queued(LOCAL, None, True)
DRAINING = Queued(LOCAL, None, False, "draining")
FULL = Queued(LOCAL, None, True, "full")


def store_of(rate: float | None, burst: float | None = None, *, now: float = 0.0, seed: int = SEED) -> MemoryStore:
    return MemoryStore(Limits(rate=rate, burst=burst), random.Random(seed).random, now, ORIGIN_MS)


def with_ticket(ticket: Ticket | None) -> Queued:
    assert ticket is not None
    return NEWCOMER._replace(shown=ticket)


def test_grants_at_once() -> None:
    store = store_of(10, 3)
    assert [store.grant(NEWCOMER, 0.0).admitted for _ in range(4)] == [True, True, True, False]


def test_shows_the_ticket_to_the_calendar() -> None:
    store = store_of(10, 1)
    store.grant(NEWCOMER, 0.0)
    ticket = store.grant(NEWCOMER, 0.0).ticket
    assert store.grant(with_ticket(ticket), 0.05).ticket == ticket
    assert store.grant(with_ticket(ticket), 0.1) == Grant(True)
    assert store.grant(with_ticket(ticket), 0.1).spent


def test_reserves_for_who_asks_first() -> None:
    store = store_of(10, 1)
    grant = store.reserve(NEWCOMER, 0.0)
    assert grant.admitted
    assert store.reserve(with_ticket(grant.ticket), 0.5) == grant
    assert not store.reserve(NEWCOMER, 0.0).admitted
    assert store.grant(with_ticket(grant.ticket), 0.5).admitted


@pytest.mark.parametrize("queued", [DRAINING, FULL])
@pytest.mark.parametrize("ask", ["grant", "reserve"])
def test_who_is_queued_for_a_hint_gets_one_and_takes_no_token(queued: Queued, ask: str) -> None:
    store = store_of(1_000, 5)
    told = [(store.grant if ask == "grant" else store.reserve)(queued, 0.0) for _ in range(200)]
    assert not any(grant.admitted for grant in told)
    assert all(grant.ticket and grant.ticket.kind == "hint" for grant in told)
    assert 1 <= min(grant.told_s for grant in told) < 1.05, f"seed {SEED}"
    assert 1.95 < max(grant.told_s for grant in told) <= 2, f"seed {SEED}"
    assert store.calendar.tokens == 5


def test_who_is_queued_for_a_hint_keeps_an_early_ticket() -> None:
    store = store_of(10, 1)
    store.grant(NEWCOMER, 0.0)
    ticket = store.grant(NEWCOMER, 0.0).ticket
    grant = store.grant(FULL._replace(shown=ticket), 0.0)
    assert grant.ticket == ticket
    assert 1 <= grant.told_s <= 2


def test_due_and_given_back_are_the_calendars() -> None:
    store = store_of(10, 1)
    store.grant(NEWCOMER, 0.0)
    ticket = store.grant(NEWCOMER, 0.0).ticket
    assert ticket is not None
    assert [store.is_due(ticket, now) for now in (0.05, 0.1, 70.0)] == [False, True, False]
    store.grant(NEWCOMER, 70.0)
    store.give_back()
    assert store.calendar.tokens == 1


def test_no_rate_is_no_limit() -> None:
    store = store_of(None)
    assert isinstance(store.calendar, Unlimited)
    assert all(store.grant(NEWCOMER, 0.0).admitted for _ in range(10_000))
    assert store.reserve(NEWCOMER, 0.0) == Grant(True)
    assert not store.is_due(Ticket("hint", ORIGIN_MS, 1, 0), 0.0)
    store.give_back()
    assert 1 <= store.grant(FULL, 0.0).told_s <= 2


def test_rate_after_no_rate_starts_a_new_calendar_with_a_full_bucket() -> None:
    store = store_of(None, 7)
    store.set_rate(10, 50.0)
    assert isinstance(store.calendar, Calendar)
    assert sum(store.grant(NEWCOMER, 50.0).admitted for _ in range(20)) == 7
    assert sum(store.grant(NEWCOMER, 50.5).admitted for _ in range(20)) == 5


def test_promises_and_what_was_used_outlast_a_time_without_a_rate() -> None:
    store = store_of(10, 1)
    store.grant(NEWCOMER, 0.0)
    hint = store.grant(NEWCOMER, 0.0).ticket
    store.grant(NEWCOMER, 30.0)
    firm = store.grant(with_ticket(hint), 30.0).ticket
    assert firm is not None
    assert firm.kind == "firm"
    store.set_rate(None, 30.0)
    store.set_rate(10, 30.0)
    assert store.grant(with_ticket(firm), 30.0).ticket == firm, "not yet its time"
    assert store.grant(with_ticket(firm), 30.1).admitted
    store.set_rate(None, 31.0)
    store.set_rate(10, 31.0)
    assert store.grant(with_ticket(firm), 31.0).spent


def test_rate_changes_live_and_keeps_the_promises() -> None:
    store = store_of(10, 1)
    calendar = store.calendar
    store.grant(NEWCOMER, 0.0)
    ticket = store.grant(NEWCOMER, 0.0).ticket
    store.set_rate(0, 0.0)
    assert store.calendar is calendar
    assert not store.grant(with_ticket(ticket), 100.0).admitted
    store.set_rate(20, 100.0)
    assert store.grant(with_ticket(ticket), 100.051).admitted


def test_rate_may_go() -> None:
    store = store_of(0)
    assert not store.grant(NEWCOMER, 0.0).admitted
    store.set_rate(None, 0.0)
    assert store.grant(NEWCOMER, 0.0).admitted
    store.set_rate(None, 1.0)
    assert store.grant(NEWCOMER, 1.0).admitted


@pytest.mark.parametrize("rate", [-1, -0.001, math.nan, math.inf, True, "10"])
def test_wrong_rate_is_refused_and_changes_nothing(rate: float) -> None:
    store = store_of(10, 3)
    with pytest.raises(ConfigurationError, match="rate"):
        store.set_rate(rate, 0.0)
    assert store.calendar.rate == 10


@pytest.mark.parametrize("step_s", [-3_600.0, -11.0, 11.0, 3_600.0])
def test_clock_step_neither_locks_out_nor_serves_more_than_a_burst(step_s: float) -> None:
    """CASES 2.16: no negative tokens, waits within the hint's cap, an hour ahead is worth one burst."""
    store = store_of(10, 5, now=10_000.0)
    assert sum(store.grant(NEWCOMER, 10_000.0).admitted for _ in range(8)) == 5
    stepped = 10_000.0 + step_s
    told = [store.grant(NEWCOMER, stepped) for _ in range(20)]
    assert sum(grant.admitted for grant in told) == (5 if step_s > 0 else 0)
    assert all(grant.told_s <= 30 for grant in told)
    tokens = store.calendar.tokens
    assert tokens is not None
    assert 0 <= tokens <= 5
    later = max(stepped, 10_000.0) + 60
    assert store.grant(with_ticket(told[-1].ticket), later).admitted
