"""`decide.lua`, and what a parent process answers in its place, are the calendar of the core.

Hypothesis drives them side by side, and compares every answer and all of the state.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from redis import Redis

from herdgate import AdmissionClass, Limits
from herdgate.core.tickets import Ticket
from herdgate.stores.redis.wire import Ask, Mode
from tests.herdgate.stores.redis.model import Calls, Fleet, Model, Parent
from tests.redis_servers import redis_server

THREE = (AdmissionClass("a", 0.5), AdmissionClass("b", 0.3), AdmissionClass("c", 0.1))
MODES: list[Mode] = ["arrive", "arrive", "arrive", "reserve", "hint"]
SEEDS = st.integers(1, 2147483646)

modes = st.sampled_from(MODES)
classes = st.integers(0, 2)


class Both(RuleBasedStateMachine):
    """One fleet and one core, told the same."""

    open_fleet: Callable[[Limits], Calls]

    @initialize(
        rate=st.sampled_from([0.5, 3.0, 10.0, 250.0]),
        burst=st.sampled_from([None, 1, 5.5]),
        shared=st.booleans(),
        hold_s=st.sampled_from([0.5, 1.5]),
    )
    def begin(self, rate: float, burst: float | None, shared: bool, hold_s: float) -> None:
        more = {"classes": THREE} if shared else {}
        times = {"hold_s": hold_s, "grace_s": 8, "hint_cap_s": 5, "horizon_s": 20}
        limits = Limits(rate=rate, burst=burst, **times, **more)  # type: ignore[arg-type]
        self.now, self.rate, self.limits = 0.0, rate, limits
        self.fleet, self.model = self.open_fleet(limits), Model(limits)
        self.tickets: list[tuple[Ticket, int]] = []
        self._compare([], 1, full=True)

    @rule(step_s=st.sampled_from([0.001, 0.02, 0.1, 0.35, 1.0, 2.0, 9.0, 30.0]))
    def pass_time(self, step_s: float) -> None:
        self.now += step_s

    @rule(count=st.integers(1, 60), mode=modes, klass=classes, seed=SEEDS)
    def newcomers(self, count: int, mode: Mode, klass: int, seed: int) -> None:
        self._compare([Ask(mode, self._class(klass))] * count, seed)

    @precondition(lambda self: self.tickets)
    @rule(
        shown=st.lists(st.tuples(st.integers(0, 10_000), modes), min_size=1, max_size=20),
        beside=st.lists(st.tuples(modes, classes), max_size=5),
        late_s=st.none() | st.sampled_from([0.0, 0.003, 0.7, 1.6, 4.0]),
        seed=SEEDS,
    )
    def show(
        self, shown: list[tuple[int, Mode]], beside: list[tuple[Mode, int]], late_s: float | None, seed: int
    ) -> None:
        """Tickets of before, some of them twice, and newcomers among them."""
        chosen = [(*self.tickets[-1 - pick % len(self.tickets)], mode) for pick, mode in shown]
        if late_s is not None:
            self._go_to(chosen[0][0].at_ms / 1000 + late_s)
        asks = [Ask(mode, klass, ticket) for ticket, klass, mode in chosen]
        self._compare([*asks, *(Ask(mode, self._class(klass)) for mode, klass in beside)], seed)

    @rule(klass=classes, kind=st.sampled_from(["hint", "firm"]), ahead_ms=st.integers(-3_000, 2_000), seed=SEEDS)
    def show_foreign(self, klass: int, kind: str, ahead_ms: int, seed: int) -> None:
        at_ms = max(0, int(self.model.calendar.v * 1000) + ahead_ms)
        self._compare([Ask("arrive", self._class(klass), Ticket(kind, at_ms, 5, seed % 1_000))], seed)  # type: ignore[arg-type]

    @rule(klass=classes, count=st.integers(1, 3), seed=SEEDS)
    def defer(self, klass: int, count: int, seed: int) -> None:
        self._compare([Ask("defer", self._class(klass))] * count, seed)

    @rule(count=st.integers(1, 3), seed=SEEDS)
    def give_back(self, count: int, seed: int) -> None:
        self._compare([], seed, given_back=count)

    @rule(
        alone_s=st.sampled_from([0.0, 0.05, 0.4, 1.0, 6.0]),
        more_s=st.sampled_from([0.0, 0.02, 0.3]),
        clamp_s=st.sampled_from([0.0, 0.3, 1.0, 10.0]),
        used=st.lists(st.integers(0, 10_000), max_size=10),
        count=st.integers(0, 30),
        klass=classes,
        seed=SEEDS,
    )
    def come_back(  # noqa: PLR0917
        self, alone_s: float, more_s: float, clamp_s: float, used: list[int], count: int, klass: int, seed: int
    ) -> None:
        """One that has decided alone for a while: some of its refill was counted here too, and tickets were used."""
        v = self.model.calendar.v
        self.now += min(alone_s, clamp_s)
        told = {"seen_v": v + alone_s, "paid_v": v + alone_s + more_s}
        shown = [self.tickets[-1 - pick % len(self.tickets)] for pick in used] if self.tickets else []
        self._compare([Ask("arrive", self._class(klass))] * count, seed, alone=told, used=shown)

    @rule(factor=st.sampled_from([0.0, 0.1, 1.0, 1.0, 2.0, 20.0]), seed=SEEDS)
    def change_rate(self, factor: float, seed: int) -> None:
        self.rate = factor * (self.limits.rate or 0)
        self._compare([], seed, set_rate=self.rate)

    def _class(self, klass: int) -> int:
        return klass % len(self.limits.classes)

    def _go_to(self, v: float) -> None:
        if self.rate:
            calendar = self.model.calendar
            self.now += max(0.0, (v - calendar.v) * calendar.first_rate / self.rate)

    def _compare(
        self,
        asks: list[Ask],
        seed: int,
        *,
        given_back: int = 0,
        set_rate: float | None = None,
        full: bool = False,
        alone: dict[str, float] | None = None,
        used: Sequence[tuple[Ticket, int]] = (),
    ) -> None:
        told: dict[str, Any] = {} if set_rate is None else {"set_rate": set_rate}
        told |= alone or {}
        told["used"] = [(ticket.kind, klass, *ticket[1:]) for ticket, klass in used]
        reply = self.fleet.call(asks, now=self.now, seed=seed, given_back=given_back, full=full, **told)
        expected = self.model.call(asks, self.now, seed, given_back, set_rate, used=used, **(alone or {}))
        assert list(reply.grants) == expected
        calendar = self.model.calendar
        assert (reply.v, reply.firm, reply.tokens) == (calendar.v, calendar.firm, calendar.tokens)
        assert (reply.rate, reply.first_rate, reply.burst) == (calendar.rate, calendar.first_rate, calendar.burst)
        assert list(reply.classes) == [(hints.outstanding, hints.show_rate) for hints in calendar.classes]
        for ask, grant in zip(asks, expected, strict=True):
            if grant.ticket is not None and grant.ticket != ask.shown:
                self.tickets = [*self.tickets[-200:], (grant.ticket, ask.klass)]


@pytest.fixture(scope="module")
def client() -> Iterator[Redis]:
    with ExitStack() as stack:
        redis = stack.enter_context(redis_server())
        yield stack.enter_context(Redis.from_url(redis.url))


def test_script_and_core_give_the_same_answers(client: Redis) -> None:
    drive(lambda limits: Fleet(client, limits))


def test_parent_and_core_give_the_same_answers() -> None:
    drive(Parent)


def drive(open_fleet: Callable[[Limits], Calls]) -> None:
    machine = type("Machine", (Both,), {"open_fleet": staticmethod(open_fleet)})
    checks = list(HealthCheck)
    run_state_machine_as_test(
        machine, settings=settings(max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=checks)
    )
