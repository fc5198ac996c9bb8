"""What a gateway tells of an absence, and a calendar that was found empty: `decide.lua` on a real Redis."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from redis import Redis

from herdgate import AdmissionClass, Limits
from herdgate.core.tickets import Ticket
from herdgate.stores.redis.wire import ANY_WORKER, Ask, Reply
from tests.herdgate.stores.redis.model import PREFIX, Fleet
from tests.redis_servers import redis_server

LIMITS = Limits(rate=10, burst=50)
V = 1_700_000_000.0
SEEN: dict[str, Any] = {
    "seen_v": V,
    "passed_v": V + 0.2,
    "seen_firm": V + 3,
    "seen_issuer": 5,
    "seen_rate": 4.0,
    "seen_first_rate": 20.0,
    "seen_ceiling": 8.0,
    "seen_configured": 10.0,
    "seen_fraction": 0.5,
}
"""What a gateway remembers of a calendar whose rate was lowered live."""

SCALARS = ("firm", "tokens", "clock", "time", "first_rate", "rate", "burst", "hold", "issuer", "settled", "worthless")
MORE = ("next_settle", "reserved", "fraction", "born", "controlled", "configured", "former", "ceiling", "life", "lost")


@pytest.fixture(scope="module")
def client() -> Iterator[Redis]:
    with ExitStack() as stack:
        redis = stack.enter_context(redis_server())
        yield stack.enter_context(Redis.from_url(redis.url))


@pytest.fixture
def fleet(client: Redis) -> Fleet:
    """Without tokens, at V."""
    fleet = Fleet(client, LIMITS)
    fleet.call(now=V)
    return fleet


def firm(reply: Reply) -> list[Ticket]:
    return [grant.ticket for grant in reply.grants if grant.ticket and grant.ticket.kind == "firm"]


def old_slot(after_s: float, serial: int = 1, issuer: int = 5) -> Ticket:
    return Ticket("firm", int((V + after_s) * 1000), issuer, serial)


def test_calendar_found_empty_goes_on_from_what_was_seen_of_the_last_one(client: Redis) -> None:
    fleet = Fleet(client, LIMITS)
    reply = fleet.call(now=V + 100, **SEEN)
    assert (reply.v, reply.firm, reply.tokens) == (V + 0.2, V + 3, 0)
    assert (reply.rate, reply.first_rate, reply.ceiling, reply.configured, reply.fraction) == (4, 20, 8, 10, 0.5)


@pytest.mark.parametrize(("paid_s", "tokens"), [(0.0, 10), (0.4, 6), (1.0, 0), (7.0, 0)])
def test_refill_that_was_handed_out_elsewhere_accrues_no_more(fleet: Fleet, paid_s: float, tokens: float) -> None:
    reply = fleet.call(now=V + 1, seen_v=V, paid_v=V + paid_s)
    assert reply.tokens == pytest.approx(tokens)
    assert reply.v == V + 1
    assert fleet.call(now=V + 2).tokens == pytest.approx(tokens + 10), "what comes later does"


def test_v_has_come_as_far_as_a_gateway_alone_has_brought_it(fleet: Fleet) -> None:
    reply = fleet.call(now=V + 1, seen_v=V + 6)
    assert (reply.v, reply.tokens) == (V + 6, 0)


def test_call_that_lay_about_brings_no_more_time_than_its_gateway_was_silent(client: Redis, fleet: Fleet) -> None:
    before = fleet.call().v
    client.hincrbyfloat(f"{PREFIX}:calendar", "time", -6)
    assert fleet.call(since_s=0.2, gateway="two").v - before == pytest.approx(0.3, abs=0.05)
    client.hincrbyfloat(f"{PREFIX}:calendar", "time", -6)
    assert fleet.call(gateway="three").v - before == pytest.approx(1.3, abs=0.1), "a second, where nothing is told"


def test_ticket_that_was_used_elsewhere_is_worth_nothing_and_its_slot_is_not_given_back(fleet: Fleet) -> None:
    slots = firm(fleet.call([Ask("defer")] * 5, now=V))
    used = [("firm", 0, *ticket[1:]) for ticket in slots[:3]]
    reply = fleet.call([Ask(shown=ticket) for ticket in slots], now=V + 0.55, used=used)
    assert [grant.admitted for grant in reply.grants] == [False, False, False, True, True]
    fleet.call(now=V + 0.55, used=used)
    assert fleet.call(now=V + 2.5).tokens == pytest.approx(10 * (2.5 - 0.5)), "no token of theirs comes back"


def test_used_tickets_of_classes_that_are_not_there_and_of_old_times_are_left_out(client: Redis, fleet: Fleet) -> None:
    used = [("hint", 7, int(V * 1000) + 5, 9, 1), ("firm", 0, 60_000, 9, 1)]
    fleet.call(now=V, used=used)
    assert not client.keys(f"{PREFIX}:spent*")


def test_who_has_seen_the_last_calendar_is_heard_when_another_was_first(fleet: Fleet) -> None:
    reply = fleet.call([Ask(shown=old_slot(0.21))], now=V + 1.1, gateway="old", **SEEN)
    assert reply.grants[0].admitted, "at a fifth of the speed, V is 0.22"
    assert reply.firm == V + 3
    assert (reply.rate, reply.first_rate, reply.ceiling, reply.fraction) == (4, 20, 8, 0.5)
    again = fleet.call([Ask(shown=old_slot(0.21)), Ask(shown=old_slot(0.22, 2))], now=V + 1.2)
    assert [grant.admitted for grant in again.grants] == [False, True]
    assert fleet.scalar("former") == 5


def test_what_was_used_of_the_last_calendar_may_be_unknown_and_is_void(fleet: Fleet) -> None:
    reply = fleet.call([Ask(shown=old_slot(0.1))], now=V + 0.15, gateway="old", **SEEN)
    assert not reply.grants[0].admitted


def test_what_was_set_since_then_holds(fleet: Fleet) -> None:
    fleet.call(now=V, set_rate=2.0, set_fraction=0.25)
    reply = fleet.call(now=V, gateway="old", **SEEN)
    assert (reply.rate, reply.ceiling, reply.fraction) == (2, 2, 0.25)


def test_calendar_that_is_no_longer_young_or_has_gone_on_for_one_takes_no_other(fleet: Fleet) -> None:
    fleet.call(now=V + 10)
    fleet.call(now=V + 10, gateway="old", **SEEN)
    assert fleet.scalar("former") == 0


def test_first_that_was_heard_of_stays(fleet: Fleet) -> None:
    fleet.call(now=V + 1, gateway="old", **SEEN)
    fleet.call(now=V + 1, gateway="older", **SEEN | {"seen_issuer": 6})
    assert fleet.scalar("former") == 5


def test_nobody_is_sent_anywhere_for_two_seconds_after_the_loss_is_noticed(fleet: Fleet) -> None:
    def sent(now: float, **head: Any) -> bool:
        return fleet.call([Ask(worker=ANY_WORKER)], now=now, workers=["ws://a"], **head).grants[0].worker is not None

    more: dict[str, Any] = {"seen_rate": 10.0, "seen_first_rate": 10.0, "seen_firm": 0}
    assert sent(V + 4)
    assert not sent(V + 5, gateway="old", **SEEN | more)
    assert not sent(V + 6.9)
    assert sent(V + 7.1)


@pytest.mark.parametrize("field", [*SCALARS, *MORE])
def test_calendar_of_a_version_that_knew_less_goes_on(client: Redis, fleet: Fleet, field: str) -> None:
    before = fleet.call([Ask("defer")] * 2, now=V + 1)
    client.hdel(f"{PREFIX}:calendar", field)
    reply = fleet.call([Ask()], now=V + 1.1)
    assert reply.v >= before.v
    assert (reply.rate, reply.first_rate, reply.ceiling, reply.configured) == (10, 10, 10, 10)


def test_hints_of_a_class_that_the_caller_does_not_know_are_settled(client: Redis) -> None:
    one = Fleet(
        client, Limits(rate=10, burst=1, classes=(AdmissionClass("resume", 0.7), AdmissionClass("normal", 0.3)))
    )
    two = Fleet(client, Limits(rate=10, burst=1, classes=(AdmissionClass("other", 1.0),)))
    one.call(now=V, gateway="one")
    two._sequence = 100
    assert one.call([Ask(klass=1)] * 20, now=V, gateway="one").classes[1][0] == 20
    assert two.call([Ask()] * 20, now=V, gateway="two").classes[0][0] == 20
    for tenth in range(100):  # the other one is always the first to see that a bucket is over
        two.call(now=V + tenth / 10, gateway="two")
        one.call(now=V + tenth / 10, gateway="one")
    reply = one.call(now=V + 10, gateway="one")
    assert [outstanding for outstanding, _ in reply.classes] == [0, 0]
    assert not client.exists(f"{PREFIX}:hint:normal:issued", f"{PREFIX}:hint:other:issued")


def test_step_of_the_server_s_clock_takes_nobody_for_dead(fleet: Fleet) -> None:
    fleet.call(now=V, gateway="other")
    assert fleet.call(now=V + 3_600, since_s=0.3, gateway="other").gateways == 2


def test_gateways_that_died_in_a_pause_of_all_count_no_more(client: Redis, fleet: Fleet) -> None:
    """Fleet time is that of the server's clock here, of which a pause is one second."""
    fleet.call(gateway="dead", counts={"open": 7})
    client.hincrbyfloat(f"{PREFIX}:calendar", "time", -11)
    reply = fleet.call(gateway="alive", since_s=11.0)
    assert (reply.gateways, reply.open) == (1, 0)


def test_gateway_that_leaves_is_forgotten_at_once(client: Redis, fleet: Fleet) -> None:
    fleet.call(now=V, gateway="leaving", counts={"open": 7, "worker:a": 7})
    fleet.call(now=V, gateway="leaving", leave=True)
    assert fleet.call(now=V).gateways == 1
    assert not client.exists(f"{PREFIX}:gateway:leaving", f"{PREFIX}:reply:leaving", f"{PREFIX}:granted")
