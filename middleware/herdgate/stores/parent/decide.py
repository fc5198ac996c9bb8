"""One call of a process, answered by the calendar of the core: same head, same batch and same reply as `decide.lua`.

    counts of the process -> orders -> what it gives back -> the batch, as it comes -> the state of all

Pure: `now` (monotonic seconds) is an argument, and the random numbers are those of the call's seed. What the script
does against a Redis that has lost its memory, and for workers that report, is not needed here: the processes end with
their parent, and a worker has room for all.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from herdgate.core.admission import FULL_RETRY_S
from herdgate.core.calendar import Calendar
from herdgate.core.classes import AdmissionClass
from herdgate.core.grant import Grant
from herdgate.core.limits import Limits
from herdgate.core.tickets import Ticket
from herdgate.stores.parent.counts import Counts
from herdgate.stores.redis.wire import ANY_WORKER, NO_WORKER, Ask, Reply, pack_reply, read_batch

__all__ = ["MOST_SEED", "ParentCalendar"]

MOST_SEED = 2147483646


class _Answered(NamedTuple):
    sequence: int
    reply: list[bytes]


class _ParkMiller:
    """Uniform numbers in (0, 1), the same ones from a seed as in `state.lua` (Park and Miller, 1988)."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self) -> float:
        self.seed = self.seed * 16807 % 2147483647
        return self.seed / 2147483647


class ParentCalendar:
    """One calendar for all processes.

    Args:
        limits: `rate` (not None), `burst`, the classes, the times and the admitted share.
        seed: of the name of this calendar's tickets, 1 to `MOST_SEED`.
        now: monotonic seconds.
        origin_ms: see `Calendar`.

    Attributes:
        calendar: the core's.
        counts: of the processes.
        fraction: share of client keys let past.
        configured: the rate that settings asked for last.
        ceiling: the rate that anyone asked for last.
    """

    def __init__(self, limits: Limits, seed: int, now: float, origin_ms: int = 0) -> None:
        self._random = _ParkMiller(seed)
        self.calendar = Calendar(limits, self._random, now, origin_ms)
        self.counts = Counts()
        self.fraction = limits.admit_fraction
        self.configured = self.ceiling = limits.rate or 0.0
        self._origin_s = origin_ms / 1000
        self._taken: object = None  # the limits that came with the last call
        self._answered: dict[str, _Answered] = {}

    def decide(self, head: Mapping[str, Any], batch: bytes, now: float) -> list[bytes]:
        """The reply to a call; to the same one again, the same reply, and nothing has changed.

        Raises:
            ValueError: a later call of this process has been answered.
            ConfigurationError, KeyError, struct.error: it is no such call.
        """
        name, sequence = head["gateway"], head["sequence"]
        last = self._answered.get(name)
        if last and last.sequence == sequence:
            return last.reply
        if last and last.sequence > sequence:
            raise ValueError(f"call {sequence} was overtaken by {last.sequence}")
        asks = list(read_batch(batch, head["workers"]))
        self._begin(head, now)
        grants = [self._grant(name, ask, head["workers"], now) for ask in asks]
        if "leave" in head:
            self.forget(name)
        reply = pack_reply(self._told(grants, head["workers"]), asks, head["workers"])
        if "leave" not in head:
            self._answered[name] = _Answered(sequence, reply)
        return reply

    def forget(self, name: str) -> None:
        """A process has ended: what it was granted is free."""
        self.counts.forget(name)
        self._answered.pop(name, None)

    def configure(self, rate: float, now: float) -> None:
        """Settings ask for this rate, admissions per second."""
        self.configured = rate
        self.set_rate(rate, now)

    def set_rate(self, rate: float, now: float) -> None:
        """Operators ask for this rate, admissions per second."""
        self.ceiling = rate
        self.calendar.set_rate(rate, now)

    def _begin(self, head: Mapping[str, Any], now: float) -> None:
        """All of a call but its batch."""
        self._random.seed = head["seed"]
        self._catch_up(head, now)
        self._take_limits(head, now)
        self.counts.tell(head["gateway"], head["counts"], now)
        if "configure" in head:
            self.configure(head["configure"], now)
        if "set_rate" in head:
            self.set_rate(head["set_rate"], now)
        self.fraction = head.get("set_fraction", self.fraction)
        for _ in range(head["given_back"]):
            self.calendar.give_back()

    def _catch_up(self, head: Mapping[str, Any], now: float) -> None:
        """Take over what this process has decided alone, and let time pass."""
        calendar = self.calendar
        for kind, klass, at_ms, issuer, serial in head.get("used", ()):
            if klass < len(calendar.classes):
                calendar.count_used(Ticket(kind, at_ms, issuer, serial), klass)
        seen = head.get("seen_v", 0)
        calendar.catch_up(now, seen - self._origin_s, head.get("paid_v", seen) - self._origin_s)

    def _take_limits(self, head: Mapping[str, Any], now: float) -> None:
        """Burst, classes and times are those of whoever calls: after a reload they come one process after the other."""
        told = head["limits"], head["classes"]
        if told == self._taken:
            return
        classes = tuple(AdmissionClass(name, share) for name, share in head["classes"])
        times = dict(head["limits"])
        limits = Limits(rate=self.configured, burst=times.pop("burst") or None, classes=classes, **times)
        self.calendar.set_limits(limits, now)
        self._taken = told

    def _grant(self, name: str, ask: Ask, workers: Sequence[str], now: float) -> Grant:
        if ask.mode == "defer":
            return self.calendar.defer(now, ask.klass)
        worker = self._choose(ask, workers)
        if ask.mode == "hint" or worker is None:
            low, high = FULL_RETRY_S
            hint = self.calendar.hint(now, ask.shown, low + (high - low) * self._random(), ask.klass)
            return hint._replace(full=worker is None)
        if ask.mode == "reserve":
            return self.calendar.reserve(now, ask.shown, ask.klass)
        grant = self.calendar.arrive(now, ask.shown, ask.klass)
        return self._count(name, grant._replace(worker=worker or None)) if grant.admitted else grant

    def _choose(self, ask: Ask, workers: Sequence[str]) -> str | None:
        """The worker for an arrival; empty: it asks for none. None: there is none, as all have room."""
        if ask.worker == NO_WORKER:
            return ""
        if ask.worker != ANY_WORKER:
            return ask.worker
        return min(workers, key=lambda worker: self.counts.granted[f"worker:{worker}"], default=None)

    def _count(self, name: str, grant: Grant) -> Grant:
        self.counts.grant(name, "pending")
        if grant.worker is not None:
            self.counts.grant(name, f"worker:{grant.worker}")
        return grant

    def _told(self, grants: Sequence[Grant], workers: Sequence[str]) -> Reply:
        calendar, granted = self.calendar, self.counts.granted
        return Reply(
            v=calendar.v + self._origin_s,
            firm=calendar.firm + self._origin_s,
            tokens=calendar.tokens,
            rate=calendar.rate,
            first_rate=calendar.first_rate,
            burst=calendar.burst,
            fraction=self.fraction,
            issuer=calendar.issuer,
            gateways=len(self.counts),
            open=granted["open"],
            pending=granted["pending"],
            configured=self.configured,
            ceiling=self.ceiling,
            classes=[(hints.outstanding, hints.show_rate) for hints in calendar.classes],
            grants=grants,
            rooms=dict.fromkeys(workers, math.inf),
        )
