"""No worker ever holds more sockets than its capacity, whatever gateways and workers do: Hypothesis and `decide.lua`.

Gateways die, fall silent with their sockets open, come back, and lose replies; workers drain and fall silent; calls are
overtaken; Redis loses its memory. What is taken for granted: a socket is at its worker within a second of its grant,
and a worker that reports does so once a second.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from redis import Redis, ResponseError

from herdgate import Limits
from herdgate.stores.redis.reporter import REPORT
from herdgate.stores.redis.wire import ANY_WORKER, Ask, Reply
from tests.herdgate.stores.redis.model import PREFIX, Fleet
from tests.redis_servers import redis_server

A, B = "ws://a:1", "ws://b:1"
WORKERS = (A, B)
LIMITS = Limits(rate=1_000.0, burst=1_000)
DEAD_S, LEARNED_S = 10.5, 11.0

workers = st.sampled_from(WORKERS)
gateways = st.integers(0, 2)


def report(client: Redis, worker: str, capacity: int | None, state: str = "UP", **sockets: int) -> None:
    """What a worker says, by the script that says it."""
    room = "" if capacity is None else capacity
    words = [worker, room, sum(sockets.values()), 0, 0.0, 0.0, state, json.dumps(sockets)]
    client.eval(REPORT.text, 1, f"{PREFIX}:calendar", *words)


def ask(
    fleet: Fleet, count: int, now: float, held: Counter[str] | None = None, worker: str = ANY_WORKER, **head: Any
) -> Reply:
    """A call of a gateway that holds these sockets, by worker, and has so many newcomers, for this worker or any."""
    counts = {f"worker:{name}": number for name, number in (held or Counter()).items()}
    return fleet.call([Ask(worker=worker)] * count, now=now, **{"counts": counts, "workers": WORKERS, **head})


def granted(reply: Reply) -> Counter[str]:
    return Counter(grant.worker for grant in reply.grants if grant.worker)


class Gateway:
    """One life of one gateway."""

    lives = 0

    def __init__(self) -> None:
        Gateway.lives += 1
        self.name = f"{Gateway.lives:016x}"
        self.held: Counter[str] = Counter()
        self.arrived: Counter[str] = Counter()  # of those, at their worker
        self.seen = 0
        self.sequence = 0
        self.last: tuple[int, Counter[str]] | None = None


class Workers(RuleBasedStateMachine):
    """Three gateways, two workers, and a Redis."""

    client: Redis

    @initialize(a=st.integers(0, 12), b=st.integers(1, 12))
    def begin(self, a: int, b: int) -> None:
        self.now = 0.0
        self.fleet = Fleet(self.client, LIMITS, full=True)
        self.capacity = {A: a, B: b}
        self.state = dict.fromkeys(WORKERS, "UP")
        self.mute: set[str] = set()
        self.gateways = [Gateway() for _ in range(3)]
        self._report_all()
        self._call(self.gateways[0], 0)

    @rule(which=gateways, count=st.integers(0, 15), lost=st.booleans())
    def arrivals(self, which: int, count: int, lost: bool) -> None:
        self._call(self.gateways[which], count, lost=lost)

    @rule(which=gateways, worker=workers, count=st.integers(0, 15))
    def arrivals_for_one(self, which: int, worker: str, count: int) -> None:
        self._call(self.gateways[which], count, worker=worker)

    @rule(which=gateways, worker=workers, count=st.integers(1, 6))
    def leave(self, which: int, worker: str, count: int) -> None:
        gateway = self.gateways[which]
        gateway.held[worker] = max(0, gateway.held[worker] - count)
        gateway.arrived[worker] = min(gateway.arrived[worker], gateway.held[worker])

    @rule(which=gateways, worker=workers)
    def reach_the_worker(self, which: int, worker: str) -> None:
        gateway = self.gateways[which]
        gateway.arrived[worker] = gateway.held[worker]

    @rule(step_s=st.sampled_from([0.01, 0.3, 1.0, 2.0, 4.0, DEAD_S]))
    def pass_time(self, step_s: float) -> None:
        self.now += step_s
        if step_s >= 1:
            self._arrive_all()
            self._report_all()

    @rule(worker=workers)
    def report_now(self, worker: str) -> None:
        if worker not in self.mute:
            self._report(worker)

    @rule(worker=workers, state=st.sampled_from(["UP", "UP", "DRAINING", "FULL"]))
    def change_state(self, worker: str, state: str) -> None:
        self.state[worker] = state
        self.report_now(worker)

    @rule(worker=workers)
    def fall_silent(self, worker: str) -> None:
        self.report_now(worker)
        self.mute.add(worker)
        self.client.delete(f"{PREFIX}:worker:{worker}")

    @rule(worker=workers)
    def speak_again(self, worker: str) -> None:
        self.mute.discard(worker)
        self._report(worker)

    @rule(which=gateways)
    def kill(self, which: int) -> None:
        self.gateways[which] = Gateway()

    @precondition(lambda self: any(gateway.last for gateway in self.gateways))
    @rule(which=gateways)
    def run_a_call_that_was_given_up(self, which: int) -> None:
        """One that has lain in a closed connection while a later one was answered."""
        gateway = self.gateways[which]
        if gateway.last is None:
            return
        sequence, held = gateway.last
        known = self.client.hget(f"{PREFIX}:reply:{gateway.name}", "sequence")  # None: forgotten, or Redis has
        with pytest.raises(ResponseError, match="overtaken") if int(known or 0) > sequence else nullcontext():
            ask(self.fleet, 9, self.now, held, gateway=gateway.name, sequence=sequence, seen_issuer=gateway.seen)

    @precondition(lambda self: any(gateway.seen for gateway in self.gateways))
    @rule()
    def lose_memory(self) -> None:
        self.client.flushall()
        self.mute.clear()
        self._call(next(gateway for gateway in self.gateways if gateway.seen), 5)

    @rule(which=gateways)
    def fill(self, which: int) -> None:
        """Once all is told, what is free can be taken, and all of it."""
        self.mute.clear()
        for _ in range(2):
            self.now += LEARNED_S
            self._arrive_all()
            for gateway in self.gateways:
                self._call(gateway, 0)
            self._report_all()
        self._call(self.gateways[which], 40)
        for worker in WORKERS:
            if self.state[worker] == "UP":
                assert self._sockets(worker) == self.capacity[worker]

    @invariant()
    def no_worker_holds_more_than_it_takes(self) -> None:
        for worker in WORKERS:
            assert self._sockets(worker) <= self.capacity[worker]

    def _sockets(self, worker: str) -> int:
        return sum(gateway.held[worker] for gateway in self.gateways)

    def _call(self, gateway: Gateway, count: int, *, lost: bool = False, worker: str = ANY_WORKER) -> None:
        gateway.last = (gateway.sequence, gateway.held.copy()) if gateway.sequence else None
        gateway.sequence += 1
        told = {"gateway": gateway.name, "sequence": gateway.sequence, "seen_issuer": gateway.seen}
        reply = ask(self.fleet, count, self.now, gateway.held, worker, **told)
        self._check(reply, count, WORKERS if worker == ANY_WORKER else [worker])
        if not lost:
            gateway.seen = reply.issuer
            gateway.held += granted(reply)

    def _check(self, reply: Reply, count: int, wanted: Sequence[str]) -> None:
        told = {worker for worker in wanted if self.state[worker] == "UP" or worker in self.mute}
        assert set(granted(reply)) <= told
        refused = [grant for grant in reply.grants if not grant.admitted]
        assert all(grant.full and grant.ticket and grant.told_s >= 1 for grant in refused)
        assert len(refused) == count - granted(reply).total()

    def _arrive_all(self) -> None:
        for gateway in self.gateways:
            gateway.arrived = gateway.held.copy()

    def _report_all(self) -> None:
        for worker in WORKERS:
            if worker not in self.mute:
                self._report(worker)

    def _report(self, worker: str) -> None:
        sockets = {gateway.name: gateway.arrived[worker] for gateway in self.gateways if gateway.arrived[worker]}
        report(self.client, worker, self.capacity[worker], self.state[worker], **sockets)


@pytest.fixture(scope="module")
def client() -> Iterator[Redis]:
    with ExitStack() as stack:
        redis = stack.enter_context(redis_server())
        yield stack.enter_context(Redis.from_url(redis.url))


def test_no_worker_is_ever_over_its_capacity(client: Redis) -> None:
    machine = type("Machine", (Workers,), {"client": client})
    checks = list(HealthCheck)
    run_state_machine_as_test(
        machine, settings=settings(max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=checks)
    )


@pytest.fixture
def fleet(client: Redis) -> Fleet:
    """One that has learned all there is: its first 10 s are over."""
    fleet = Fleet(client, LIMITS)
    fleet.call(now=0.0)
    return fleet


def admitted(fleet: Fleet, count: int, now: float = LEARNED_S, **head: Any) -> Counter[str]:
    return granted(ask(fleet, count, now, **head))


def test_a_new_calendar_gives_half_of_the_room_for_ten_seconds(client: Redis) -> None:
    fleet = Fleet(client, LIMITS, full=True)
    report(client, A, 9)
    assert admitted(fleet, 20, 0.0, workers=[A]) == {A: 4}
    assert admitted(fleet, 20, 9.9, held=Counter({A: 4}), workers=[A]) == {}
    assert admitted(fleet, 20, 10.0, held=Counter({A: 4}), workers=[A]) == {A: 5}


def test_the_share_of_its_capacity_that_is_taken_says_who_is_next(client: Redis, fleet: Fleet) -> None:
    report(client, A, 30)
    report(client, B, 10)
    assert admitted(fleet, 20) == {A: 15, B: 5}


def test_a_worker_that_never_reports_has_room_for_all(fleet: Fleet) -> None:
    assert admitted(fleet, 500, workers=[A]) == {A: 500}


def test_no_capacity_is_no_limit_and_none_at_all_takes_nobody(client: Redis, fleet: Fleet) -> None:
    report(client, A, None)
    report(client, B, 0)
    assert admitted(fleet, 50) == {A: 50}


def test_a_capacity_holds_when_its_worker_reports_no_more(client: Redis, fleet: Fleet) -> None:
    report(client, A, 5)
    client.delete(f"{PREFIX}:worker:{A}")
    assert admitted(fleet, 50, workers=[A]) == {A: 5}
    assert 3_500 < client.ttl(f"{PREFIX}:room:{A}") <= 3_600


def test_a_report_is_kept_for_five_seconds(client: Redis, fleet: Fleet) -> None:
    report(client, A, 5)
    assert 0 < client.ttl(f"{PREFIX}:worker:{A}") <= 5


def test_sockets_that_came_past_the_gateways_take_room(client: Redis, fleet: Fleet) -> None:
    client.eval(REPORT.text, 1, f"{PREFIX}:calendar", A, 5, 3, 0, 0, 0, "UP", json.dumps({"": 3}))
    assert admitted(fleet, 50, workers=[A]) == {A: 2}


def test_places_of_a_killed_gateway_are_free_ten_seconds_later(client: Redis, fleet: Fleet) -> None:
    report(client, A, 5)
    assert admitted(fleet, 50, 20.0, workers=[A]) == {A: 5}
    assert admitted(fleet, 50, 29.9, workers=[A], gateway="two") == {}
    report(client, A, 5)
    assert admitted(fleet, 50, 30.1, workers=[A], gateway="two") == {}, "until the worker has said that they are gone"
    report(client, A, 5)
    assert admitted(fleet, 50, 30.1, workers=[A], gateway="two") == {A: 5}


def test_rooms_that_are_left_are_told(client: Redis, fleet: Fleet) -> None:
    report(client, A, 10)
    assert ask(fleet, 3, LEARNED_S).rooms == {A: 8, B: math.inf}, "a worker without reports has room for all"
    report(client, B, 5, "DRAINING")
    assert ask(fleet, 4, LEARNED_S, Counter({B: 3})).rooms == {A: 6, B: -1}
    report(client, B, 5, "FULL")
    assert ask(fleet, 0, LEARNED_S, Counter({A: 12})).rooms == {A: 0, B: 0}
    client.flushall()
    assert ask(fleet, 0, 20.0, seen_issuer=77).rooms == {}, "nothing is known yet"


def test_nobody_is_sent_anywhere_for_two_seconds_after_redis_has_lost_its_memory(client: Redis, fleet: Fleet) -> None:
    client.flushall()
    assert admitted(fleet, 5, 20.0, seen_issuer=77, workers=[A]) == {}
    assert admitted(fleet, 5, 21.9, seen_issuer=77, workers=[A]) == {}
    assert admitted(fleet, 5, 22.0, seen_issuer=77, workers=[A]) == {A: 5}


def test_an_arrival_that_needs_no_worker_needs_no_room(client: Redis, fleet: Fleet) -> None:
    report(client, A, 0)
    reply: Reply = fleet.call([Ask()] * 3, now=LEARNED_S, workers=[A])
    assert [(grant.admitted, grant.worker) for grant in reply.grants] == [(True, None)] * 3


def test_no_worker_at_all_is_full(fleet: Fleet) -> None:
    nobody: Sequence[str] = ()
    (grant,) = ask(fleet, 1, LEARNED_S, workers=nobody).grants
    assert grant.full
    assert grant.ticket
