"""What one process admits while the calendar of its fleet is out of reach."""

import random
from typing import Any

import pytest

from herdgate import Limits
from herdgate.core.tickets import Ticket
from herdgate.stores.redis.budget import CallBudget
from herdgate.stores.redis.local_share import LocalShare
from herdgate.stores.redis.wire import Ask, Reply

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
        ceiling=rate,
        classes=[(0, 1.0)],
        grants=[],
    )


def share_of(reply: Reply | None, limits: Limits | None = None, **told: Any) -> LocalShare:
    told = {"gateways": max(1, reply.gateways) if reply else 1} | told
    return LocalShare(limits or Limits(rate=100), reply, V, random.Random(1).random, 0.0, **told)


def admitted(share: LocalShare, seconds: float, since: float = 0.0) -> int:
    """Of a crowd of newcomers that comes all the time."""
    steps = range(int(seconds * 1_000))
    return sum(share.answer(Ask(), since + step / 1_000).admitted for step in steps)


@pytest.mark.parametrize(("gateways", "expected"), [(1, 200), (4, 50), (20, 10), (0, 200)])
def test_share_is_the_rate_divided_by_the_gateways_and_starts_without_tokens(gateways: int, expected: int) -> None:
    assert admitted(share_of(last(gateways=gateways)), 2.0) == pytest.approx(expected, abs=1)


def test_rate_is_the_last_one_known_and_not_that_of_the_settings() -> None:
    assert admitted(share_of(last(rate=20, first_rate=100)), 2.0) == pytest.approx(10, abs=1)


def test_rate_of_nobody_stays_that() -> None:
    assert admitted(share_of(last(rate=0)), 2.0) == 0


@pytest.mark.parametrize(("siblings", "expected"), [(1, 20), (4, 5)])
def test_without_a_last_reply_it_is_a_part_of_the_settings_rate_and_starts_without_tokens(
    siblings: int, expected: int
) -> None:
    share = share_of(None, Limits(rate=10, burst=3), gateways=siblings)
    assert admitted(share, 2.0) == pytest.approx(expected, abs=1)


def test_least_rate_can_be_divided() -> None:
    assert admitted(share_of(None, Limits(rate=1e-9), gateways=8), 0.1) == 0


def test_rate_that_is_ordered_holds_from_the_start() -> None:
    assert admitted(share_of(last(), rate=20), 2.0) == pytest.approx(10, abs=1)


def test_rate_that_is_lowered_takes_what_the_bucket_holds_beyond_it() -> None:
    share = share_of(last(rate=400, first_rate=400), Limits(rate=400))
    share.pass_time(0.9)
    for second in range(10):
        share.pass_time(1.0 + second)
    share.set_rate(4, 11.0)
    assert admitted(share, 1.0, 11.0) <= 2


def test_reload_reaches_it() -> None:
    share = share_of(last(gateways=1))
    share.set_limits(Limits(rate=100, burst=2), 0.0)
    for second in range(10):
        share.pass_time(float(second))
    assert (share.state(9.0).burst, admitted(share, 0.001, 9.0), share.state(9.0).rate) == (2, 1, 100)


def test_refill_it_has_handed_out_is_counted_at_its_own_speed() -> None:
    share = share_of(last(rate=50, first_rate=100))
    assert share.refill_by(0.5) == pytest.approx(0.25)
    share.heard(0.1)
    assert share.untold == pytest.approx(0.15)
    assert share.unheard == 0
    assert share.refill_by(1.5) == pytest.approx(0.75)
    assert [share.untold, share.unheard] == pytest.approx([0.65, 0.5])


def test_process_that_was_stopped_has_decided_nothing_meanwhile() -> None:
    share = share_of(last(gateways=1))
    assert share.refill_by(60.0) == 1
    assert share.refill_by(60.5) == 1.5


def test_where_nobody_is_admitted_meanwhile_no_refill_is_handed_out() -> None:
    share = share_of(last(), fail="closed")
    assert share.refill_by(1.0) == 0
    assert not share.answer(Ask(), 1.0).admitted


def test_firm_slots_of_the_fleet_come_before_newcomers_and_are_kept() -> None:
    share = share_of(last(firm_s=1.0))
    assert admitted(share, 0.99) == 0
    firm = Ticket("firm", int((V + 0.5) * 1000), 77, 1)
    share = share_of(last(firm_s=1.0))
    assert share.answer(Ask(shown=firm), 0.51).admitted
    assert not share.answer(Ask(shown=firm), 0.52).admitted


def test_tickets_of_the_share_carry_the_fleet_s_time() -> None:
    ticket = share_of(last()).answer(Ask(), 0.0).ticket
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
