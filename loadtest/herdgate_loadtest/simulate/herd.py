"""Plays a scenario: clients that the engine's behaviours bring back, before the calendar of the core, in virtual time.

Theory of operation. Each client that is outside has one entry in the wheel: the moment of its next try, of its decision
(while it waits in a gateway's line), or of the firm slot for which it is held. What happens then puts it back, or lets
it in. Clients that are in have none, so a failure goes through all of them.

    coming --dial--> in line --its turn--> decided --admitted--> in (after the worker's set-up)
       ^               |                      |  firm slot close by: held --its moment--> decided
       +--gateway down-+------ denied --------+

Rules: what a client does is what `engine.scheduler` has it do, what a gateway does is what `Reception` and `Gate` do:
a full fleet asks the calendar for a hint of a second or two at least, a lost worker's clients are told one, a dead
gateway's clients are told nothing. Tickets go to behaviours as a mark: they decide whether one is shown, never which.
"""

import gc
import math
import random
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from herdgate.core.grant import Grant
from herdgate.core.tickets import Ticket
from herdgate.stores.memory import MemoryStore
from herdgate_loadtest.engine import Outcome as ClientOutcome
from herdgate_loadtest.engine import Record, compute_record, parse_behaviour
from herdgate_loadtest.engine.answer import Denial
from herdgate_loadtest.simulate.fleet import Gateway, Workers
from herdgate_loadtest.simulate.outcome import BINS_PER_S, Outcome
from herdgate_loadtest.simulate.scenario import Failure, GatewayDown, RateChange, Scenario, WorkerKilled
from herdgate_loadtest.simulate.wheel import Wheel

__all__ = ["simulate"]

_TICKET = "ticket"
_COMING, _IN_LINE, _HELD = range(3)
_A_MOMENT_S = 1e-6  # later than a slot, so that no rounding makes it early
_OUTSIDE = -1.0

Step = tuple[float, Callable[[float], None]]


def simulate(scenario: Scenario, strategy: str = "") -> Outcome:
    """Play `scenario`, with every client of the kind `strategy`, if given."""
    if strategy:
        scenario = scenario.all_of(strategy)
    with _no_garbage_collection():
        herd = _Herd(scenario)
        herd.run()
        return Outcome(strategy, herd.record(), herd.arrivals, herd.admissions(), herd.losses)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Millions of entries and no cycle among them: looking for some takes a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Herd:
    """The state of one simulation; lists and arrays go by number of the client.

    Attributes:
        arrivals: tries by tenth of a second.
        losses: moments at which a failure cut clients off, and how many.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.arrivals: defaultdict[int, int] = defaultdict(int)
        self.losses: list[tuple[float, int]] = []
        self._scenario = scenario
        self._rng = rng = random.Random(scenario.seed)
        self._store = MemoryStore(scenario.limits, random.Random(rng.getrandbits(64)).random, 0.0)
        self._arrive = self._store.calendar.arrive
        answer_s = 1 / scenario.answers_per_s if scenario.answers_per_s else 0.0
        self._gateways = [Gateway(answer_s, scenario.max_held) for _ in range(scenario.gateways)]
        self._workers = Workers(scenario.workers)
        self._max_wait_s = scenario.max_wait_s
        self._wheel = Wheel()
        counts = scenario.counts()
        self._behaviours = [parse_behaviour(name) for name in counts]
        self._kinds = array("H", [kind for kind, count in enumerate(counts.values()) for _ in range(count)])
        rng.shuffle(self._kinds)  # so that no kind has a gateway, or the first places in a line, to itself
        clients = scenario.clients
        self._began = array("d", [rng.uniform(0, scenario.spread_s) for _ in range(clients)])
        self._due = array("d", self._began)
        self._back = array("d", [_OUTSIDE]) * clients
        self._tries = array("L", [0]) * clients
        self._worker = array("H", [0]) * clients
        self._stage = bytearray(clients)
        self._tickets: list[Ticket | None] = [None] * clients
        self._denials = array("d")
        self._failed = 0
        self._ended = array("d")  # admissions that a failure has ended
        for client, at in enumerate(self._began):
            self._wheel.put(at, client)

    def run(self) -> None:
        """Play to the end: nobody is outside and no failure is left, or the time is over."""
        end = self._scenario.end_s
        for at, happen in sorted(self._timeline(), key=lambda step: step[0]):
            if at < end:
                self._run_until(at)
                happen(at)
        self._run_until(end)

    def record(self) -> Record:
        """The result record. Nothing takes time here but waiting in line and being held."""
        scenario = self._scenario
        names = [behaviour.name for behaviour in self._behaviours]
        return compute_record(
            [
                ClientOutcome(names[kind], tries, *((None, None) if back < 0 else (back, back - began)))
                for kind, tries, back, began in zip(self._kinds, self._tries, self._back, self._began, strict=True)
            ],
            rate=scenario.rate,
            burst=scenario.burst,
            denied=len(self._denials),
            failed=self._failed,
            denials_s=self._denials,
            admissions_s=self.admissions(),
        )

    def admissions(self) -> "array[float]":
        """The moment of each, those included that a failure has ended."""
        return array("d", [back for back in self._back if back >= 0]) + self._ended

    # What happens by itself.

    def _timeline(self) -> Iterator[Step]:
        for failure in self._scenario.failures:
            yield failure.at_s, self._step(failure)
            if isinstance(failure, WorkerKilled) and failure.for_s is not None:
                yield failure.at_s + failure.for_s, partial(self._workers.revive, failure.worker - 1)

    def _step(self, failure: Failure) -> Callable[[float], None]:
        if isinstance(failure, RateChange):
            return lambda now: self._store.set_rate(failure.rate, now)
        until = math.inf if failure.for_s is None else failure.at_s + failure.for_s
        if isinstance(failure, GatewayDown):
            return lambda now: self._gateway_dies(failure.gateway - 1, now, until)
        return lambda now: self._worker_dies(failure.worker - 1, now, until)

    def _run_until(self, end: float) -> None:
        pop, stages, dial, decide = self._wheel.pop, self._stage, self._dial, self._decide
        while (entry := pop(end)) is not None:
            at, client = entry
            if stages[client] == _COMING:
                dial(at, client)
            else:
                decide(at, client, self._leave_line(client))

    def _gateway_dies(self, number: int, now: float, until: float) -> None:
        """Its sockets end without a word; handshakes have no orderly answer."""
        affected = [client for client in range(self._scenario.clients) if self._is_at(client, number)]
        self._wheel.drop({client for client in affected if self._stage[client]})
        self._gateways[number].die(now, until)
        lost = 0
        for client in affected:
            was_in = self._stage[client] == _COMING and self._back[client] <= now
            if self._stage[client] == _HELD:
                self._tickets[client] = None  # it has not been told that slot, and the ticket it showed is spent
            self._stage[client] = _COMING
            if self._back[client] >= 0:
                self._workers.release(self._worker[client])
            if was_in:
                lost += 1
                self._end_socket(client)
                self._wheel.put(now + self._rng.uniform(0, self._scenario.spread_s), client)
            else:
                self._back[client] = _OUTSIDE
                self._fail(now, client)
        self._count_lost(now, lost)

    def _is_at(self, client: int, number: int) -> bool:
        """Its latest try went there, and is not over."""
        is_there = self._back[client] >= 0 or self._stage[client] != _COMING
        return is_there and (client + self._tries[client] - 1) % len(self._gateways) == number

    def _worker_dies(self, number: int, now: float, until: float) -> None:
        """Its sockets are called back; set-ups that it has not answered are refused. Both are told a time."""
        affected = [client for client in range(self._scenario.clients) if self._is_served_by(client, number)]
        self._workers.kill(number, until)
        lost = 0
        for client in affected:
            grant = self._store.hint(now)
            if self._back[client] <= now:
                lost += 1
                self._end_socket(client)
                self._come_back(now, client, grant)
            else:
                self._back[client] = _OUTSIDE
                self._deny(now, client, grant)
        self._count_lost(now, lost)

    def _is_served_by(self, client: int, number: int) -> bool:
        return self._back[client] >= 0 and self._worker[client] == number

    def _end_socket(self, client: int) -> None:
        self._ended.append(self._back[client])
        self._back[client] = _OUTSIDE

    def _count_lost(self, now: float, lost: int) -> None:
        if lost:
            self.losses.append((now, lost))

    # What clients do, and are told.

    def _dial(self, at: float, client: int) -> None:
        tries = self._tries[client]
        gateway = self._gateways[(client + tries) % len(self._gateways)]
        self._tries[client] = tries + 1
        self._due[client] = at
        self.arrivals[int(at * BINS_PER_S)] += 1
        if at < gateway.down_until:
            self._fail(at, client)
            return
        turn = gateway.queue(at)
        if turn > at:
            self._stage[client] = _IN_LINE
            self._wheel.put(turn, client)
        else:
            self._decide(at, client, gateway)

    def _leave_line(self, client: int) -> Gateway:
        gateway = self._gateways[(client + self._tries[client] - 1) % len(self._gateways)]
        if self._stage[client] == _HELD:
            gateway.held -= 1
        self._stage[client] = _COMING
        return gateway

    def _decide(self, at: float, client: int, gateway: Gateway) -> None:
        shown = self._tickets[client]
        if self._workers.room < 1:
            self._deny(at, client, self._store.hint(at, shown))
            return
        grant = self._arrive(at, shown)
        if grant.admitted:
            worker, latency_s = self._workers.take()
            self._back[client], self._worker[client], self._tickets[client] = at + latency_s, worker, None
        elif self._is_worth_holding(grant, gateway):
            gateway.held += 1
            self._stage[client], self._tickets[client] = _HELD, grant.ticket
            self._wheel.put(at + grant.told_s + _A_MOMENT_S, client)
        else:
            self._deny(at, client, grant)

    def _is_worth_holding(self, grant: Grant, gateway: Gateway) -> bool:
        ticket = grant.ticket
        is_near = ticket is not None and ticket.kind == "firm" and grant.told_s <= self._max_wait_s
        return is_near and gateway.may_hold

    def _deny(self, at: float, client: int, grant: Grant) -> None:
        self._denials.append(at - self._due[client])
        self._come_back(at, client, grant)

    def _come_back(self, at: float, client: int, grant: Grant) -> None:
        told_s, ticket = max(1, math.ceil(grant.told_s * 1000)) / 1000, grant.ticket  # as it goes over the wire
        self._retry(at, client, Denial(told_s, _TICKET if ticket else None), ticket)

    def _fail(self, at: float, client: int) -> None:
        self._failed += 1
        ticket = self._tickets[client]
        self._retry(at, client, Denial(None, _TICKET if ticket else None), ticket)

    def _retry(self, at: float, client: int, denial: Denial, ticket: Ticket | None) -> None:
        behaviour = self._behaviours[self._kinds[client]]
        delay_s, shown = behaviour.after(denial, self._tries[client], self._rng)
        self._tickets[client] = ticket if shown else None
        self._wheel.put(at + delay_s, client)
