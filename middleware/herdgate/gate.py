"""The gate: the decision core with a clock, a random source and a store.

One gate may serve several middlewares. Everything here is synchronous and belongs to one event loop: call it from
there only.
"""

import os
import random
import re
import secrets as tokens
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from weakref import WeakSet

from herdgate.core.admission import AdmissionControl
from herdgate.core.answers import Admitted, Arrival, Denied, LateReason, Queued, Reason, State
from herdgate.core.classes import RESUME
from herdgate.core.clients import Client
from herdgate.core.errors import ConfigurationError
from herdgate.core.limits import Limits
from herdgate.core.numbers import check_rate
from herdgate.core.permits import Permit
from herdgate.core.sessions import SessionTokens
from herdgate.core.tickets import TicketSigner
from herdgate.memory import MemoryWatch
from herdgate.stores.memory import MemoryStore

__all__ = ["ClassSnapshot", "Gate", "GateSnapshot", "read_secrets"]


@dataclass(frozen=True, slots=True)
class ClassSnapshot:
    """One class of arrivals at one moment.

    Attributes:
        hints: hints given and neither kept nor over.
        show_rate: share of hints that are kept, moving average.
        admitted: arrivals admitted so far.
    """

    hints: int
    show_rate: float
    admitted: int


@dataclass(frozen=True, slots=True)
class GateSnapshot:
    """All counts of a gate at one moment, of this process only. Reading it changes nothing.

    Attributes:
        state: `draining` refuses every arrival.
        rate: admissions per second now; None: no limit.
        burst: admissions at once after a quiet time; None without a rate.
        tokens: admissions possible at this moment; None without a rate.
        classes: by name, the first one first.
        firm_s: seconds of refill set aside for firm slots.
        admit_fraction: share of client keys let past.
        pending: permits of set-ups in progress.
        open: permits of sockets accepted and not yet gone.
        held: handshakes held open until their firm slot.
        admitted: arrivals admitted so far.
        denied: arrivals refused so far, by reason; for some of them only after they were admitted.
        gone: arrivals whose client left before the verdict.
        unenforced: arrivals refused in shadow mode and let past all the same; they stand in `denied` too.
        exempt: arrivals let past without a decision.
        client_keys: client keys remembered.
    """

    state: State
    rate: float | None
    burst: float | None
    tokens: float | None
    classes: Mapping[str, ClassSnapshot]
    firm_s: float
    admit_fraction: float
    pending: int
    open: int
    held: int
    admitted: int
    denied: Mapping[Reason, int]
    gone: int
    unenforced: int
    exempt: int
    client_keys: int


def read_secrets(secrets: Sequence[str | bytes] | None) -> list[bytes]:
    """The secrets as bytes; a random one if there are none.

    Raises:
        ConfigurationError: they are not texts or bytes.
    """
    if secrets is None:
        return [tokens.token_bytes(32)]
    if isinstance(secrets, (str, bytes)):
        secrets = [secrets]
    if not isinstance(secrets, Sequence) or not all(isinstance(secret, (str, bytes)) for secret in secrets):
        way_out = "write a list of texts or bytes, the one that signs first"
        raise ConfigurationError("secrets", "something else", way_out)  # never what was given: it may hold a secret
    return [secret.encode() if isinstance(secret, str) else secret for secret in secrets]


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
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        rng: Callable[[], float] = random.random,
    ) -> None:
        if not isinstance(route, str) or not re.fullmatch("[A-Za-z0-9_-]{1,64}", route):
            raise ConfigurationError("route", route, "write 1 to 64 letters, digits, - and _")
        limits = _divided(limits, processes)
        if processes > 1 and secrets is None:
            way_out = f"give the same ones to all {processes} processes, so that each can read the others' tickets"
            raise ConfigurationError("secrets", None, way_out)
        self.route = route
        self.limits = limits
        self._processes = processes
        self._clock = clock
        self._wall_clock = wall_clock
        self._memory = MemoryWatch(limits.max_memory_bytes)
        if beside is None:
            self._store = MemoryStore(limits, rng, clock(), int(wall_clock() * 1000))
        else:
            self._store = beside._store
        self._secrets = read_secrets(secrets)
        self._sessions = self._session_tokens(limits, self._secrets)
        self._control = AdmissionControl(limits, self._signers(limits, self._secrets), self._store, rng)
        self.held = 0
        self.gone = 0
        self._unenforced = 0
        self._exempt = 0
        _gates.add(self)

    def decide(self, arrival: Arrival) -> Admitted | Denied:
        """Decide one arrival now. An `Admitted` holds a permit: release it."""
        now = self._clock()
        screened = self._screen(arrival, now)
        if isinstance(screened, Denied):
            return screened
        return self._control.settle(screened, self._store.grant(screened, now), now)

    def reserve(self, arrival: Arrival) -> str | Denied:
        """Decide one arrival that will come a moment later: the text of a ticket that admits it, or a denial."""
        now = self._clock()
        screened = self._screen(arrival, now)
        if isinstance(screened, Denied):
            return screened
        return self._control.settle_reserved(screened, self._store.reserve(screened, now), now)

    def _screen(self, arrival: Arrival, now: float) -> Denied | Queued:
        self._control.permits.memory_full = self._memory.is_over(now)
        return self._control.screen(arrival, now)

    def refuse(self, reason: LateReason, klass: str | None = None) -> Denied:
        """Deny an arrival of a class that was admitted before; its permit is for the caller to release."""
        now, place = self._clock(), self._control.position(klass)
        if reason == "auth":
            return self._control.refuse(reason, None, place)
        grant = self._store.defer(now, place) if reason == "auth_busy" else self._store.hint(now, klass=place)
        return self._control.refuse(reason, grant, place)

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
        return self._control.permits.take(client)

    def set_limits(self, limits: Limits) -> None:
        """Other limits from now on; what was counted and promised goes on, and sockets above a cap stay.

        Gates beside each other share a calendar: give all of them the same rate, burst, classes and times.

        Raises:
            ConfigurationError: a limit is wrong, or `max_clients` is another one; nothing has changed then.
        """
        limits = _divided(limits, self._processes)
        memory = MemoryWatch(limits.max_memory_bytes)
        self._control.set_limits(limits, self._signers(limits, self._secrets))
        self._store.set_limits(limits, self._clock())
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

    def set_rate(self, rate: float | None) -> None:
        """Change the rate, admissions per second, from now on; promises made stretch with it. None: no limit.

        With several `processes` it is the rate of all of them; tell every one.

        Raises:
            ConfigurationError: negative, NaN, infinite or not a number.
        """
        check_rate("rate", rate, unit="a number of admissions per second")
        self._store.set_rate(rate and rate / self._processes, self._clock())

    def set_admit_fraction(self, fraction: float) -> None:
        """Let this share of client keys past from now on, always the same ones.

        Raises:
            ConfigurationError: not a number from 0 to 1.
        """
        self._control.set_admit_fraction(fraction)

    def drain(self) -> None:
        """Refuse every arrival from now on, with a hint; sockets stay."""
        self._control.state = "draining"

    def resume(self) -> None:
        """Take arrivals again."""
        self._control.state = "open"

    def snapshot(self) -> GateSnapshot:
        """All counts as of now."""
        control, calendar = self._control, self._store.calendar
        calendar.advance(self._clock())
        return GateSnapshot(
            state=control.state,
            rate=calendar.rate,
            burst=calendar.burst,
            tokens=calendar.tokens,
            classes={
                hints.name: ClassSnapshot(hints.outstanding, hints.show_rate, control.admitted[hints.name])
                for hints in calendar.classes
            },
            firm_s=max(0.0, calendar.firm - calendar.v),
            admit_fraction=control.admit_fraction,
            pending=control.permits.pending,
            open=control.permits.open,
            held=self.held,
            admitted=control.admitted.total(),
            denied=dict(control.denied),
            gone=self.gone,
            unenforced=self._unenforced,
            exempt=self._exempt,
            client_keys=control.client_keys,
        )

    def _signers(self, limits: Limits, secrets: Sequence[bytes]) -> list[TicketSigner]:
        return [TicketSigner(secrets, route=self.route, klass=klass.name) for klass in limits.classes]

    def _session_tokens(self, limits: Limits, secrets: Sequence[bytes]) -> SessionTokens | None:
        if not any(klass.name == RESUME for klass in limits.classes):
            return None
        return SessionTokens(secrets, route=self.route, ttl_s=limits.session_ttl_s)

    def _separate(self) -> None:
        """Become a gate of its own in a process that was forked from another; done by itself after a fork."""
        self._store.separate()


def _divided(limits: Limits, processes: int) -> Limits:
    if not isinstance(limits, Limits):
        raise ConfigurationError("limits", limits, "write Limits(rate=...)")
    return limits.divided(processes)
