"""Who is alive and what each has been granted: `gateways.lua` on a real Redis, with time as an argument."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from redis import Redis, ResponseError

from herdgate import Limits
from herdgate.stores.redis.wire import ANY_WORKER, Ask
from tests.herdgate.stores.redis.model import PREFIX, Fleet
from tests.redis_servers import redis_server

WORKER = "ws://a:1"


@pytest.fixture(scope="module")
def client() -> Iterator[Redis]:
    with ExitStack() as stack:
        redis = stack.enter_context(redis_server())
        yield stack.enter_context(Redis.from_url(redis.url))


@pytest.fixture
def fleet(client: Redis) -> Fleet:
    return Fleet(client, Limits(rate=100.0), full=True)


def granted(client: Redis) -> dict[str, int]:
    """What all gateways have been granted."""
    found: dict[bytes, bytes] = client.hgetall(f"{PREFIX}:granted")  # type: ignore[assignment]
    return {field.decode(): int(count) for field, count in found.items()}


def test_grants_count_from_the_call_that_gave_them(client: Redis, fleet: Fleet) -> None:
    reply = fleet.call([Ask(worker=ANY_WORKER)] * 3 + [Ask()], now=0.0, workers=[WORKER])
    assert (reply.pending, reply.open) == (4, 0)
    assert granted(client) == {"pending": 4, f"worker:{WORKER}": 3}


def test_counts_are_as_they_were_told_last(client: Redis, fleet: Fleet) -> None:
    fleet.call(now=0.0, counts={"open": 7, "pending": 2, f"worker:{WORKER}": 9})
    fleet.call(now=0.0, counts={"open": 5, f"worker:{WORKER}": 4})
    assert granted(client) == {"open": 5, f"worker:{WORKER}": 4}


def test_gateways_add_up(fleet: Fleet) -> None:
    fleet.call(now=0.0, counts={"open": 7}, gateway="one")
    reply = fleet.call(now=0.0, counts={"open": 5, "pending": 1}, gateway="two")
    assert (reply.gateways, reply.open, reply.pending) == (2, 12, 1)


def test_a_grant_whose_reply_was_lost_is_gone_with_the_next_call(client: Redis, fleet: Fleet) -> None:
    fleet.call([Ask(worker=ANY_WORKER)] * 3, now=0.0, workers=[WORKER])
    fleet.call(now=0.1)
    assert granted(client) == {}


def test_one_that_has_not_called_for_ten_seconds_counts_no_more(client: Redis, fleet: Fleet) -> None:
    fleet.call(now=0.0, counts={"open": 7, f"worker:{WORKER}": 7}, gateway="dead")
    assert fleet.call(now=10.0, gateway="alive").gateways == 2
    reply = fleet.call(now=10.1, gateway="alive")
    assert (reply.gateways, reply.open) == (1, 0)
    assert granted(client) == {}
    assert not client.exists(f"{PREFIX}:gateway:dead", f"{PREFIX}:reply:dead")


def test_one_that_was_taken_for_dead_tells_its_counts_again(client: Redis, fleet: Fleet) -> None:
    told = {"open": 7, f"worker:{WORKER}": 7}
    fleet.call(now=0.0, counts=told, gateway="slow")
    fleet.call(now=20.0, gateway="other")
    reply = fleet.call(now=20.1, counts=told, gateway="slow")
    assert (reply.gateways, reply.open) == (2, 7)
    assert granted(client) == told


def test_one_alone_comes_back_after_any_time(client: Redis, fleet: Fleet) -> None:
    told = {"open": 7, f"worker:{WORKER}": 7}
    fleet.call(now=0.0, counts=told)
    assert fleet.call(now=100.0, counts=told).gateways == 1
    assert granted(client) == told


def test_a_call_asked_again_is_answered_as_before_and_counts_once(client: Redis, fleet: Fleet) -> None:
    asks = [Ask(worker=ANY_WORKER)] * 3
    first = fleet.call(asks, now=0.0, workers=[WORKER], sequence=7)
    again = fleet.call(asks, now=0.5, workers=[WORKER], sequence=7)
    assert again == first
    assert granted(client)["pending"] == 3


def test_a_call_that_was_overtaken_changes_nothing(client: Redis, fleet: Fleet) -> None:
    fleet.call(now=0.0, counts={f"worker:{WORKER}": 9}, sequence=8)
    with pytest.raises(ResponseError, match="call 7 was overtaken by 8"):
        fleet.call([Ask()] * 3, now=0.1, sequence=7)
    assert granted(client) == {f"worker:{WORKER}": 9}


def test_nothing_is_left_of_a_fleet_that_is_empty(client: Redis, fleet: Fleet) -> None:
    for second in range(5):
        fleet.call(now=float(second), counts={"open": 1, f"worker:{second}": 1}, gateway=str(second))
    fleet.call(now=60.0)
    assert set(client.scan_iter()) == {f"{PREFIX}:{name}".encode() for name in ("calendar", "gateways", "reply:one")}
