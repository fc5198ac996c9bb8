"""The gate: the decision core with a clock, a random source and a store.

One gate may serve several middlewares. It belongs to one event loop: call it from there only. A gate of one process
decides at once; one that shares its calendar with a fleet waits for the answer of Redis, a few milliseconds.
"""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakSet

from herdgate.client_screen import ClientScreen
from herdgate.core.admission import AdmissionControl
from herdgate.core.answers import Admitted, Arrival, Denied, Invitation, LateReason, Queued
from herdgate.core.classes import RESUME
from herdgate.core.clients import Client
from herdgate.core.grant import Grant
from herdgate.core.limits import Limits
from herdgate.core.numbers import check_rate
from herdgate.core.permits import Permit
from herdgate.core.sessions import SessionTokens
from herdgate.core.tickets import TicketSigner
from herdgate.fleet import Fleet
from herdgate.gate_settings import check_route, check_sharing, own_limits, read_secrets
from herdgate.memory import MemoryWatch
from herdgate.question import Question
from herdgate.snapshot import ClassSnapshot, GateSnapshot
from herdgate.stores.memory import MemoryStore
from herdgate.stores.opening import open_clients, open_store

if TYPE_CHECKING:
    from herdgate.stores.redis.fleet_clients import FleetClients, Wants
    from herdgate.stores.redis.store import RedisStore

__all__ = ["Gate"]


_gates: "WeakSet[Gate]" = WeakSet()


def _separate_gates() -> None:
    for gate in _gates:
        gate._separate()


if hasattr(os, "register_at_fork"):  # servers that load the app first and fork then (gunicorn --preload)
    os.register_at_fork(after_in_child=_separate_gates)


class Gate:
    """Decides who comes in.

    Args:
        limits: what it admits.
        secrets: sign tickets; the first signs, all verify. None: a random one, so that tickets end with the process.
        route: the name its tickets and cookies carry; letters, digits, `-` and `_`.
        processes: gates that share the limits, one in each process; this one admits its share, see
            `Limits.divided`. More than 1 need `secrets`: a ticket of one counts as a hint in the others.
        beside: another gate, whose calendar this one shares: both admit one rate together, that of the first one's
            limits. Everything else is each gate's own.
        fleet: all its processes share one calendar, through its Redis. Rate, burst, classes, times and admitted share
            are then those of all together, and so are limits per client of scope `fleet`; other limits per client and
            caps stay each process's own.
        clock: monotonic seconds.
        wall_clock: Unix seconds, for session tokens and for what tickets call the first moment of the calendar.
        rng: uniform numbers in [0, 1).

    Attributes:
        limits: those in force, of this process.

    Raises:
        ConfigurationError: a setting is wrong.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        secrets: Sequence[str | bytes] | None = None,
        route: str = "default",
        processes: int = 1,
        beside: "Gate | None" = None,
        fleet: Fleet | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        rng: Callable[[], float] = random.random,
    ) -> None:
        check_route(route)
        self._fleet: Fleet | None = fleet if beside is None else beside._fleet
        limits = own_limits(limits, processes, self._fleet)
        check_sharing(processes=processes, secrets=secrets, is_beside=beside is not None, fleet=fleet)
        self.route = route
        self.limits = limits
        self._processes = processes
        self._clock = clock
        self._wall_clock = wall_clock
        self._memory = MemoryWatch(limits.max_memory_bytes)
        self._store: MemoryStore | RedisStore
        if beside is not None:
            self._store = beside._store
        elif fleet is not None:
            self._store = open_store(fleet, limits, random=rng, clock=clock, wall_clock=wall_clock)
        else:
            self._store = MemoryStore(limits, rng, clock(), int(wall_clock() * 1000))
        self._secrets = read_secrets(secrets)
        self._sessions = self._session_tokens(limits, self._secrets)
        self._control = AdmissionControl(limits, self._signers(limits, self._secrets), self._store, rng)
        self._client_screen: ClientScreen | None = None
        if clients := _clients_of(self, limits, beside):
            self._client_screen = ClientScreen(self._control, clients, self._store, clock)
        self.held = 0
        self.gone = 0
        self._unenforced = 0
        self._exempt = 0
        if not isinstance(self._store, MemoryStore):
            self._store.permits.add(self._control.permits)
            if secrets is None:
                self._store.share_secret(self._secrets[0], self.set_secrets)
        _gates.add(self)

    @property
    def is_shared(self) -> bool:
        """True if the calendar is a fleet's."""
        return not isinstance(self._store, MemoryStore)

    @property
    def member(self) -> str | None:
        """What the fleet calls this process, new at every start; None for a gate of one process."""
        return None if isinstance(self._store, MemoryStore) else self._store.gateway

    def start(self, siblings: int = 1) -> None:
        """Join the fleet, in the running loop; does nothing for a gate of one process, or the second time.

        Args:
            siblings: processes that start together with this one, itself included: until the fleet has answered, this
                one admits its part of the rate.
        """
        if not isinstance(self._store, MemoryStore):
            self._store.start(siblings)
        if self._client_screen is not None:
            self._client_screen.clients.start()

    async def aclose(self) -> None:
        """Leave the fleet: what is shared with other gates is closed with it."""
        if self._client_screen is not None:
            await self._client_screen.clients.aclose()
        if not isinstance(self._store, MemoryStore):
            await self._store.aclose()

    async def decide(self, arrival: Arrival) -> Admitted | Denied:
        """Decide one arrival. An `Admitted` holds a permit: release it."""
        now = self._clock()
        screened = await self._screen(arrival, now, "place")
        if isinstance(screened, Denied):
            return screened
        verdict: Admitted | Denied | None = None
        try:
            grant = await _given(self._store.grant(screened, now))
            verdict = await self._settle(screened, grant, now)
            return verdict
        finally:
            if screened.place is not None and not isinstance(verdict, Admitted):
                screened.place.release()

    def ask(self, arrival: Arrival, answer: Callable[[Admitted | Denied], None]) -> Callable[[], None] | None:
        """As `decide`, without a task for who waits: `answer` is called once, at once or later, in the running loop.

        Returns:
            None, if it was called. Else what takes the question back: `answer` is not called any more, and what is
            granted is undone.
        """
        if self._client_screen is not None:
            deciding = asyncio.ensure_future(self.decide(arrival))
            return Question(deciding, lambda verdict: verdict, self.undo, answer).take_back
        now = self._clock()
        self._look_around(now)
        screened = self._control.screen(arrival, now)
        if isinstance(screened, Denied):
            answer(screened)
            return None
        store = self._store
        begun = store.grant(screened, now) if isinstance(store, MemoryStore) else store.begin(screened, now)
        if isinstance(begun, Grant):
            answer(self._control.settle(screened, begun, now))
            return None
        return Question(begun, partial(self._settle_later, screened, now), self.undo, answer).take_back

    async def reserve(self, arrival: Arrival) -> str | Denied:
        """Decide one arrival that will come a moment later: the text of a ticket that admits it, or a denial."""
        now = self._clock()
        screened = await self._screen(arrival, now, "room")
        if isinstance(screened, Denied):
            return screened
        grant = await _given(self._store.reserve(screened, now))
        if self._client_screen is not None:
            return await self._client_screen.settle_reserved(screened, grant, now)
        return self._control.settle_reserved(screened, grant, now)

    async def _screen(self, arrival: Arrival, now: float, wants: "Wants") -> Denied | Queued:
        self._look_around(now)
        if self._client_screen is not None:
            return await self._client_screen.screen(arrival, now, wants)
        return self._control.screen(arrival, now)

    def _look_around(self, now: float) -> None:
        """Take over what changes by itself."""
        self._control.permits.memory_full = self._memory.is_over(now)
        if self._store.fraction is not None:
            self._control.admit_fraction = self._store.fraction

    def _settle_later(self, screened: Queued, now: float, grant: Grant) -> Admitted | Denied:
        assert not isinstance(self._store, MemoryStore)
        try:
            return self._control.settle(screened, grant, now)
        finally:
            self._store.used(grant)

    async def _settle(self, screened: Queued, grant: Grant, now: float) -> Admitted | Denied:
        if self._client_screen is not None:
            return await self._client_screen.settle(screened, grant, now)
        return self._control.settle(screened, grant, now)

    def undo(self, admitted: Admitted) -> None:
        """Take back an admission that nobody used, and its permit."""
        admitted.permit.release()
        self._store.give_back()

    async def refuse(self, reason: LateReason, klass: str | None = None) -> Denied:
        """Deny an arrival of a class that was admitted before; its permit is for the caller to release."""
        now, place = self._clock(), self._control.position(klass)
        if reason == "auth":
            return self._control.refuse(reason, None, place)
        asked = self._store.defer(now, place) if reason == "auth_busy" else self._store.hint(now, klass=place)
        return self._control.refuse(reason, await _given(asked), place)

    async def invite(self, klass: str | None = None, *, firm: bool) -> Invitation:
        """Call back the client of a socket, of this class, that is closed for no fault of its own.

        Args:
            firm: it can be served at once, and gets a firm slot; else a hint, a second or two away at least.
        """
        now, place = self._clock(), self._control.position(klass)
        asked = self._store.defer(now, place) if firm else self._store.hint(now, klass=place)
        return self._control.invite(await _given(asked), place)

    def session_token(self) -> str | None:
        """Proof that its holder was admitted now, for the class `resume`; None where there is no such class."""
        return None if self._sessions is None else self._sessions.give(self._wall_clock())

    def is_session_token(self, text: str) -> bool:
        """True if it was given by this route, and no longer than `Limits.session_ttl_s` ago."""
        return self._sessions is not None and self._sessions.is_good(text, self._wall_clock())

    @contextmanager
    def holding(self, denied: Denied) -> Iterator[None]:
        """Hold an arrival open until its firm slot: it was not refused after all."""
        self._control.denied[denied.reason] -= 1
        self.held += 1
        try:
            yield
        finally:
            self.held -= 1

    def let_past(self, client: Client, *, exempt: bool) -> Permit:
        """A permit whatever the limits say: for exempt clients, and for shadow mode after a denial."""
        if exempt:
            self._exempt += 1
        else:
            self._unenforced += 1
        place = self._client_screen.clients.hold(client) if self._client_screen is not None else None
        return self._control.permits.take(client, place=place)

    def set_limits(self, limits: Limits) -> None:
        """Other limits from now on; what was counted and promised goes on, and sockets above a cap stay.

        Gates beside each other share a calendar: give all of them the same rate, burst, classes and times.

        Raises:
            ConfigurationError: a limit is wrong, or `max_clients` is another one; nothing has changed then.
        """
        limits = own_limits(limits, self._processes, self._fleet)
        memory = MemoryWatch(limits.max_memory_bytes)
        self._control.set_limits(limits, self._signers(limits, self._secrets))
        self._store.set_limits(limits, self._clock())
        if self._client_screen is not None:
            self._client_screen.clients.set_limits(limits)
        self._sessions = self._session_tokens(limits, self._secrets)
        self._memory = memory
        self.limits = limits

    def set_secrets(self, secrets: Sequence[str | bytes]) -> None:
        """Other secrets from now on: the first signs; what one that is not among them has signed is void.

        Raises:
            ConfigurationError: they are no list of texts or bytes, or one is too short; nothing has changed then.
        """
        read = read_secrets(secrets)
        self._control.signers = self._signers(self.limits, read)
        self._sessions = self._session_tokens(self.limits, read)
        self._secrets = read

    def set_workers(self, names: Callable[[], Sequence[str]]) -> None:
        """Admit for one worker each, by their capacity in the fleet; `Permit.worker` says which. Only in a fleet.

        Args:
            names: called for the workers that arrivals may go to now, at most 254.
        """
        if not isinstance(self._store, MemoryStore):
            self._store.workers = names

    def set_rate(self, rate: float | None) -> None:
        """Change the rate, admissions per second, from now on; promises made stretch with it. None: no limit.

        With several `processes` it is the rate of all of them; tell every one.

        Raises:
            ConfigurationError: negative, NaN, infinite or not a number.
        """
        check_rate("rate", rate, unit="a number of admissions per second")
        self._store.set_rate(rate and rate / self._processes, self._clock())

    def set_admit_fraction(self, fraction: float) -> None:
        """Let this share of client keys past from now on, always the same ones; of a fleet's, on all of it.

        Raises:
            ConfigurationError: not a number from 0 to 1.
        """
        self._control.set_admit_fraction(fraction)
        self._store.set_fraction(fraction)

    def drain(self) -> None:
        """Refuse every arrival from now on, with a hint; sockets stay."""
        self._control.state = "draining"

    def resume(self) -> None:
        """Take arrivals again."""
        self._control.state = "open"

    def snapshot(self) -> GateSnapshot:
        """All counts as of now."""
        control, calendar = self._control, self._store.state(self._clock())
        return GateSnapshot(
            state=control.state,
            rate=calendar.rate,
            burst=calendar.burst,
            tokens=calendar.tokens,
            classes={
                name: ClassSnapshot(hints, show_rate, control.admitted[name])
                for name, hints, show_rate in calendar.classes
            },
            firm_s=calendar.firm_s,
            admit_fraction=control.admit_fraction if self._store.fraction is None else self._store.fraction,
            pending=control.permits.pending,
            open=control.permits.open,
            held=self.held,
            admitted=control.admitted.total(),
            denied=dict(control.denied),
            gone=self.gone,
            unenforced=self._unenforced,
            exempt=self._exempt,
            client_keys=control.client_keys,
            fleet=None if isinstance(self._store, MemoryStore) else self._store.snapshot(),
        )

    def _signers(self, limits: Limits, secrets: Sequence[bytes]) -> list[TicketSigner]:
        fleet = self._fleet.name if self._fleet else ""
        return [TicketSigner(secrets, fleet=fleet, route=self.route, klass=klass.name) for klass in limits.classes]

    def _session_tokens(self, limits: Limits, secrets: Sequence[bytes]) -> SessionTokens | None:
        if not any(klass.name == RESUME for klass in limits.classes):
            return None
        return SessionTokens(secrets, route=self.route, ttl_s=limits.session_ttl_s)

    def _separate(self) -> None:
        """Become a gate of its own in a process that was forked from another; done by itself after a fork."""
        self._store.separate()


async def _given(grant: Grant | Awaitable[Grant]) -> Grant:
    """What a store answers, at once or later."""
    return grant if isinstance(grant, Grant) else await grant


def _clients_of(gate: Gate, limits: Limits, beside: Gate | None) -> "FleetClients | None":
    """What asks the fleet about clients; None where there is no fleet."""
    store, fleet = gate._store, gate._fleet
    if isinstance(store, MemoryStore) or fleet is None:
        return None
    if beside is not None and beside._client_screen is not None:
        return beside._client_screen.clients.beside(limits, gate.route)
    return open_clients(fleet, limits, gate.route, lambda: store.snapshot().gateways, gate._clock)
