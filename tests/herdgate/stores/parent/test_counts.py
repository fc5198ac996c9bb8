"""Who is alive, what each was granted, and which worker is next: as the script has it, call for call."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from redis import Redis

from herdgate import Limits
from herdgate.stores.redis.wire import ANY_WORKER, NO_WORKER, Ask
from tests.herdgate.stores.redis.model import Fleet, Parent
from tests.redis_servers import redis_server

WORKERS = ("a", "b", "c")
LIMITS = Limits(rate=20, burst=4)

counts = st.fixed_dictionaries(
    {"open": st.integers(0, 9), "pending": st.integers(0, 9)},
    optional={f"worker:{name}": st.integers(0, 5) for name in WORKERS},
)


class Alike(RuleBasedStateMachine):
    """One script and one parent, called by several processes."""

    client: Redis

    @initialize()
    def begin(self) -> None:
        self.now = 0.0
        self.subjects = Fleet(self.client, LIMITS), Parent(LIMITS)
        self._same([], full=True)

    @rule(step_s=st.sampled_from([0.001, 0.3, 3.7, 11.3]))
    def pass_time(self, step_s: float) -> None:
        self.now += step_s

    @rule(
        gateway=st.sampled_from(["one", "two", "three"]),
        told=counts,
        workers=st.lists(st.sampled_from(WORKERS), unique=True),
        asked=st.lists(st.sampled_from([NO_WORKER, ANY_WORKER, *WORKERS]), max_size=8),
        given_back=st.integers(0, 2),
    )
    def call(self, gateway: str, told: dict[str, int], workers: list[str], asked: list[str], given_back: int) -> None:
        asks = [Ask(worker=worker) for worker in asked]
        self._same(asks, gateway=gateway, counts=told, workers=workers, given_back=given_back)

    @rule(gateway=st.sampled_from(["one", "two", "three"]))
    def leave(self, gateway: str) -> None:
        self._same([], gateway=gateway, leave=True)

    @rule(alone_s=st.sampled_from([0.2, 3.0]), serial=st.integers(0, 20), count=st.integers(0, 3))
    def come_back(self, alone_s: float, serial: int, count: int) -> None:
        v = self.subjects[1].state.calendar.v
        used = [("hint", serial % 2, 0, 77, serial), ("firm", 0, int(v * 1000), 77, serial)]
        self._same([Ask()] * count, seen_v=v + alone_s, paid_v=v + alone_s, used=used)

    @rule(name=st.sampled_from(["set_rate", "configure"]), rate=st.sampled_from([0, 5, 40]))
    def order_rate(self, name: str, rate: int) -> None:
        self._same([], **{name: rate})

    @rule(fraction=st.sampled_from([0, 0.5, 1]))
    def order_fraction(self, fraction: float) -> None:
        self._same([], set_fraction=fraction)

    def _same(self, asks: list[Ask], **head: Any) -> None:
        script, parent = (subject.call(asks, now=self.now, seed=7, **head) for subject in self.subjects)
        assert parent == script


@pytest.fixture(scope="module")
def client() -> Iterator[Redis]:
    with ExitStack() as stack:
        redis = stack.enter_context(redis_server())
        yield stack.enter_context(Redis.from_url(redis.url))


def test_script_and_parent_count_alike(client: Redis) -> None:
    machine = type("Machine", (Alike,), {"client": client})
    checks = list(HealthCheck)
    run_state_machine_as_test(
        machine, settings=settings(max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=checks)
    )


def test_call_made_again_has_the_same_reply_and_no_other_effect() -> None:
    parent = Parent(LIMITS)
    first = parent.call([Ask()], now=0.0)
    parent._sequence -= 1
    again = parent.call([Ask()], now=5.0)
    assert again == first
    assert parent.call(now=5.0, counts={}).tokens == 4


def test_call_that_was_overtaken_is_an_error() -> None:
    parent = Parent(LIMITS)
    parent.call(now=0.0)
    parent.call(now=0.0)
    parent._sequence = 0
    with pytest.raises(ValueError, match="call 1 was overtaken by 2"):
        parent.call(now=0.0)


def test_process_that_has_ended_is_forgotten_at_once() -> None:
    parent = Parent(LIMITS)
    parent.call(now=0.0, gateway="one", counts={"open": 3, "pending": 1})
    assert parent.call(now=0.0, gateway="two", counts={"open": 2}).open == 5
    parent.state.forget("one")
    parent.state.forget("one")
    told = parent.call(now=0.0, gateway="two", counts={"open": 2})
    assert (told.gateways, told.open, told.pending) == (1, 2, 0)


def test_process_that_leaves_is_forgotten_at_once() -> None:
    parent = Parent(LIMITS)
    parent.call(now=0.0, gateway="one", counts={"open": 3})
    assert parent.call(now=0.0, gateway="one", leave=True).gateways == 0
    assert parent.call(now=0.0, gateway="two").open == 0
