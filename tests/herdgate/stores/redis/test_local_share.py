"""What one process admits while the calendar of its fleet is out of reach."""

import random

import pytest

from herdgate import Limits
from herdgate.core.answers import Queued
from herdgate.core.clients import LOCAL
from herdgate.core.tickets import Ticket
from herdgate.stores.memory import MemoryStore
from herdgate.stores.redis.budget import CallBudget
from herdgate.stores.redis.local_share import local_share
from herdgate.stores.redis.wire import Reply

V = 1_700_000_000.0


def last(*, rate: float = 100.0, first_rate: float = 100.0, firm_s: float = 0.0, gateways: int = 4) -> Reply:
    return Reply(
        v=V,
        firm=V + firm_s,
        tokens=50,
        rate=rate,
        first_rate=first_rate,
        burst=rate,
        fraction=1,
        issuer=77,
        gateways=gateways,
        open=0,
        pending=0,
        configured=rate,
        classes=[(0, 1.0)],
        grants=[],
    )


def share_of(reply: Reply | None, limits: Limits | None = None) -> MemoryStore:
    return local_share(limits or Limits(rate=100), reply, V, random.Random(1).random, 0.0)


def admitted(share: MemoryStore, seconds: float, ticket: Ticket | None = None) -> int:
    steps = range(int(seconds * 1_000))
    return sum(share.grant(Queued(LOCAL, ticket, True), step / 1_000).admitted for step in steps)


@pytest.mark.parametrize(("gateways", "expected"), [(1, 200), (4, 50), (20, 10), (0, 200)])
def test_share_is_the_rate_divided_by_the_gateways_and_starts_without_tokens(gateways: int, expected: int) -> None:
    assert admitted(share_of(last(gateways=gateways)), 2.0) == pytest.approx(expected, abs=1)


def test_rate_is_the_last_one_known_and_not_that_of_the_settings() -> None:
    assert admitted(share_of(last(rate=20, first_rate=100)), 2.0) == pytest.approx(10, abs=1)


def test_rate_of_nobody_stays_that() -> None:
    assert admitted(share_of(last(rate=0)), 2.0) == 0


def test_without_a_last_reply_the_settings_hold_for_one_process() -> None:
    share = share_of(None, Limits(rate=10, burst=3))
    assert admitted(share, 2.0) == pytest.approx(3 + 20, abs=1)


def test_firm_slots_of_the_fleet_come_before_newcomers_and_are_kept() -> None:
    share = share_of(last(firm_s=1.0))
    assert admitted(share, 0.99) == 0
    firm = Ticket("firm", int((V + 0.5) * 1000), 77, 1)
    share = share_of(last(firm_s=1.0))
    assert share.grant(Queued(LOCAL, firm, False), 0.51).admitted
    assert not share.grant(Queued(LOCAL, firm, False), 0.52).admitted


def test_tickets_of_the_share_carry_the_fleet_s_time() -> None:
    ticket = share_of(last()).grant(Queued(LOCAL, None, True), 0.0).ticket
    assert ticket is not None
    assert 0 < ticket.at_ms - V * 1000 < 1_000
    assert ticket.issuer != 77


def test_calls_spend_a_small_bucket() -> None:
    budget, calls = CallBudget(0.0), 0
    for step in range(10_000):
        if not budget.wait_s(step / 1_000):
            budget.spend()
            calls += 1
    assert calls == pytest.approx(10 + 50 * 10, abs=1)
