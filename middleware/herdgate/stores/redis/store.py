"""One calendar for a fleet, in Redis: arrivals are settled in batches, one call of one script at a time.

    grant -> batch -> call (at most 50 a second) -> decide.lua -> reply -> the whole batch is settled

While a call is under way the next batch gathers. A call that is not answered in time, or cannot be made, leaves its
batch to the *local share*: a calendar of this process alone. Nothing here ever closes a socket.

Rules: a permit is counted from the moment it is granted; what was granted to a client that has gone is given back; a
grant that comes after its deadline is taken off the local share, as its arrival was settled there.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakSet

from herdgate.core.answers import Queued
from herdgate.core.calendar import Calendar
from herdgate.core.errors import ConfigurationError
from herdgate.core.grant import Grant
from herdgate.core.limits import Limits
from herdgate.core.numbers import check_rate
from herdgate.core.permits import Permits
from herdgate.core.tickets import Ticket
from herdgate.fleet import Fleet
from herdgate.snapshot import FleetSnapshot
from herdgate.stores.links import open_link
from herdgate.stores.memory import MemoryStore
from herdgate.stores.redis.batching import Batcher, Waiting
from herdgate.stores.redis.errors import LinkError, LinkTimeout
from herdgate.stores.redis.local_rooms import LocalRooms
from herdgate.stores.redis.local_share import answer_alone, local_share
from herdgate.stores.redis.scripts import Script
from herdgate.stores.redis.shared_secret import SharedSecret
from herdgate.stores.redis.wire import (
    ANY_WORKER,
    NO_WORKER,
    Ask,
    Mode,
    Reply,
    head_of_settings,
    pack_batch,
    pack_head,
    read_reply,
)
from herdgate.stores.state import CalendarState

__all__ = ["DECIDE", "RedisStore"]

DECIDE = Script.load("state", "calendar", "gateways", "workers", "control", "decide")
STALE_S = 2.0
"""Age of the last reply from which Redis counts as away, seconds."""

MOST_SEED = 2147483646

_logger = logging.getLogger("herdgate.redis")


class _Call(NamedTuple):
    asks: Sequence[Ask]
    order: Sequence[int]
    workers: Sequence[str]


class RedisStore:
    """The calendar of a fleet, for one process of it. Belongs to one event loop.

    Args:
        fleet: its Redis and name.
        limits: `rate` (not None), `burst`, the classes, the times and the admitted share of the whole fleet.
        random: uniform numbers in [0, 1).
        clock: monotonic seconds.
        wall_clock: Unix seconds, for tickets, until the fleet has told its time.

    Attributes:
        gateway: this process's name in the fleet, new at every start.
        permits: those that count, of all gates of this process.
        workers: called for the names of the workers that arrivals may be sent to now; None: none are needed.
        last: the state of the fleet as last told; None before the first reply.
    """

    def __init__(
        self,
        fleet: Fleet,
        limits: Limits,
        *,
        random: Callable[[], float],
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
    ) -> None:
        _check_rate(limits.rate)
        self.gateway = secrets.token_hex(8)
        self.permits: WeakSet[Permits] = WeakSet()
        self.workers: Callable[[], Sequence[str]] | None = None
        self.last: Reply | None = None
        self._link = open_link(fleet.redis)
        self._limits = limits
        self._prefix = f"{{herdgate:{fleet.name}}}"
        self._calendar_key = f"{self._prefix}:calendar"
        self._settled = head_of_settings(limits, fleet)
        self._fleet = fleet
        self._random, self._clock, self._wall_clock = random, clock, wall_clock
        self._last_at = 0.0
        self._batcher = Batcher(self._settle, clock)
        self._unsettled_pending = 0  # granted, and on the way to whoever asked
        self._unsettled = Counter[str]()  # those of them that go to a worker, by its name
        self._rooms = LocalRooms()
        self._overdue: _Call | None = None
        self._orders: dict[str, float] = {}  # to be told with the next call
        self._given_back = 0
        self._sequence = 0
        self._secret = SharedSecret(self._link, f"{self._prefix}:secret")
        self._local: MemoryStore | None = None
        self._link.on_late = self._take_late

    @property
    def fraction(self) -> float | None:
        """The admitted share that the fleet has agreed on; None before it was told."""
        return self.last.fraction if self.last else None

    def state(self, now: float) -> CalendarState:
        """The calendar that decides now: the fleet's as last told, or this process's own."""
        last, limits = self.last, self._limits
        if self._local is not None:
            return self._local.state(now)
        names = [klass.name for klass in limits.classes]
        if last is None:
            return CalendarState(limits.rate, limits.burst, 0.0, 0.0, [(name, 0, 1.0) for name in names])
        classes = [(name, *hints) for name, hints in zip(names, last.classes, strict=False)]
        return CalendarState(last.rate, last.burst, last.tokens, max(0.0, last.firm - self._v(now)), classes)

    def snapshot(self) -> FleetSnapshot:
        """The fleet as last told."""
        last = self.last
        counts = (last.gateways, last.pending, last.open) if last else (0, 0, 0)
        is_up = self._local is None and last is not None and self._clock() - self._last_at < STALE_S
        return FleetSnapshot(is_up, *counts, self._link.calls)

    # For the gate

    async def grant(self, queued: Queued, now: float) -> Grant:
        """The calendar's answer; an arrival queued for a hint only gets one."""
        return await self._ask("arrive" if queued.reason is None else "hint", queued.klass, queued.shown)

    def begin(self, queued: Queued, now: float) -> Grant | asyncio.Future[Grant]:
        """As `grant`, without waiting: the answer, or where it will be; then call `used` once.

        Cancelled before it is answered, whatever is granted is given back.
        """
        return self._begin("arrive" if queued.reason is None else "hint", queued.klass, queued.shown)

    def used(self, grant: Grant) -> None:
        """A grant from `begin` that came later is counted by its permit now, or was given back."""
        if grant.admitted:
            self._count_unsettled(grant, -1)

    async def reserve(self, queued: Queued, now: float) -> Grant:
        """As `grant`, but who would be admitted gets a firm slot for this moment instead."""
        return await self._ask("reserve" if queued.reason is None else "hint", queued.klass, queued.shown)

    async def hint(self, now: float, shown: Ticket | None = None, klass: int = 0) -> Grant:
        """A hint for an arrival that may not come in for another reason, not too soon."""
        return await self._ask("hint", klass, shown)

    async def defer(self, now: float, klass: int = 0) -> Grant:
        """A firm slot for one grant that could not be used, which stays spent."""
        return await self._ask("defer", klass)

    def give_back(self) -> None:
        """Undo one grant that was not used."""
        if self._local is not None:
            self._local.give_back()
        else:
            self._given_back += 1

    def is_due(self, ticket: Ticket, now: float) -> bool:
        """True from the ticket's time to the end of its grace, as far as can be told from here."""
        if self._local is not None:
            return self._local.is_due(ticket, now)
        late = self._v(now) - ticket.at_ms / 1000
        return self._speed > 0 and 0 <= late <= self._limits.grace_s * max(1.0, self._speed)

    def set_rate(self, rate: float | None, now: float) -> None:
        """Change the rate of the whole fleet, with the next call.

        Raises:
            ConfigurationError: None, negative, NaN, infinite or not a number.
        """
        _check_rate(rate)
        self._order("set_rate", rate or 0.0)
        if self._local is not None:
            self._local.set_rate((rate or 0.0) / self._gateways, now)

    def set_fraction(self, fraction: float) -> None:
        """Change the admitted share on the whole fleet, with the next call."""
        self._order("set_fraction", fraction)

    def set_limits(self, limits: Limits, now: float) -> None:
        """Take over burst, classes and times; and what is another rate or admitted share, for the whole fleet."""
        _check_rate(limits.rate)
        if limits.rate != self._limits.rate:
            self._order("configure", limits.rate or 0.0)
        if limits.admit_fraction != self._limits.admit_fraction:
            self._order("set_fraction", limits.admit_fraction)
        self._limits = limits
        self._settled = head_of_settings(limits, self._fleet)

    def share_secret(self, proposed: bytes, take: Callable[[Sequence[bytes]], None]) -> None:
        """Agree with the fleet on a secret: `take` is called with it, now and whenever it is another one."""
        self._secret.share(proposed, take)

    # Life

    def separate(self) -> None:
        """This process is a fork of another, which has not started yet: it goes by a name of its own."""
        self.gateway = secrets.token_hex(8)

    def start(self) -> None:
        """Call from now on, in the running loop; harmless to repeat."""
        self._batcher.start(self._join)

    async def aclose(self) -> None:
        """Stop calling, and close the link. Whoever waits is settled here."""
        self._settle_here(await self._batcher.stop())
        await self._link.aclose()

    # Inside

    @property
    def _speed(self) -> float:
        last = self.last
        return last.rate / last.first_rate if last and last.rate else 0.0 if last else 1.0

    @property
    def _gateways(self) -> int:
        return max(1, self.last.gateways) if self.last else 1

    def _v(self, now: float) -> float:
        """Refill time of the fleet: that of the last reply plus this process's clock since."""
        if self.last is None:
            return self._wall_clock()
        return self.last.v + (now - self._last_at) * self._speed

    def _order(self, name: str, value: float) -> None:
        self._orders[name] = value
        self._batcher.hurry()

    def _begin(self, mode: Mode, klass: int, shown: Ticket | None) -> Grant | asyncio.Future[Grant]:
        self.start()
        needs_worker = self.workers is not None and mode in ("arrive", "reserve")
        ask = Ask(mode, klass, shown, ANY_WORKER if needs_worker else NO_WORKER)
        if not self._link.is_up and self._local is not None:
            return self._answer_here(ask)
        return self._batcher.add(ask).answer

    async def _ask(self, mode: Mode, klass: int, shown: Ticket | None = None) -> Grant:
        begun = self._begin(mode, klass, shown)
        if isinstance(begun, Grant):
            return begun
        grant: Grant | None = None
        try:
            grant = await begun
            return grant
        except asyncio.CancelledError:
            answered = begun.done() and not begun.cancelled()
            if answered and begun.result().admitted:
                grant = begun.result()
                self.give_back()
            raise
        finally:
            if grant is not None:
                self.used(grant)

    async def _join(self) -> None:
        try:
            await self._link.check(self._prefix)
        except ConfigurationError as error:
            _logger.error("%s", error)
        except LinkError as error:
            _logger.warning("%s; this process admits its share alone", error)

    async def _settle(self, batch: Sequence[Waiting]) -> None:
        try:
            await self._call(batch)
        except LinkError:
            self._settle_here(batch)
        except asyncio.CancelledError:
            self._settle_here(batch)
            raise
        except Exception:
            _logger.exception("a call failed; its arrivals are settled by this process alone")
            self._settle_here(batch)

    async def _call(self, batch: Sequence[Waiting]) -> None:
        asks = [waiting.ask for waiting in batch]
        data, order = pack_batch(asks)
        orders, given_back = self._orders, self._given_back
        self._orders, self._given_back = {}, 0
        workers = self._names()
        call = _Call(asks, order, workers)
        head = pack_head(self._head(orders, given_back, workers), self._settled)
        try:
            reply: Any = await self._link.call(DECIDE, [self._calendar_key], [head, data])
        except LinkTimeout:
            self._overdue = call
            self._orders = orders | self._orders
            raise
        except LinkError:
            self._orders = orders | self._orders
            self._given_back += given_back
            raise
        told = self._read(reply, call)
        self._local = self._overdue = None
        for position, grant in zip(order, told.grants, strict=True):
            self._hand_over(batch[position].answer, grant)
        await self._secret.agree(told.issuer)

    def _names(self) -> Sequence[str]:
        return tuple(self.workers()) if self.workers is not None else ()

    def _held(self) -> Counter[str]:
        """Permits at each worker as they stand, those included that are on the way to whoever asked."""
        held = self._unsettled.copy()
        for permits in self.permits:
            held.update(permits.workers)
        return held

    def _counts(self) -> dict[str, int]:
        """As `_held`, and those of all sockets."""
        counts = {f"worker:{name}": count for name, count in self._held().items()}
        counts["open"] = sum(permits.open for permits in self.permits)
        counts["pending"] = self._unsettled_pending + sum(permits.pending for permits in self.permits)
        return counts

    def _head(self, orders: Mapping[str, float], given_back: int, workers: Sequence[str]) -> dict[str, Any]:
        last = self.last
        self._sequence += 1
        return {
            "gateway": self.gateway,
            "sequence": self._sequence,
            "seed": 1 + int(self._random() * MOST_SEED),
            "seen_v": self._v(self._clock()) if last else 0,
            "seen_firm": last.firm if last else 0,
            "seen_issuer": last.issuer if last else 0,
            "issuer": 1 + int(self._random() * 0xFFFFFFFE),
            "given_back": given_back,
            "counts": self._counts(),
            "workers": workers,
            **orders,
        }

    def _read(self, reply: Any, call: "_Call") -> Reply:
        first = self.last is None
        self.last = told = read_reply(reply, *call)
        self._last_at = self._clock()
        self._rooms.learn(told, self._held() + Counter(grant.worker for grant in told.grants if grant.worker))
        if first and told.configured != self._limits.rate:
            self._order("configure", self._limits.rate or 0.0)
        return told

    def _hand_over(self, answer: asyncio.Future[Grant], grant: Grant) -> None:
        if answer.done():  # its client has gone meanwhile
            if grant.admitted:
                self.give_back()
            return
        if grant.admitted:
            self._count_unsettled(grant, 1)
        answer.set_result(grant)

    def _count_unsettled(self, grant: Grant, change: int) -> None:
        self._unsettled_pending += change
        if grant.worker is not None:
            self._unsettled[grant.worker] += change

    def _settle_here(self, batch: Sequence[Waiting]) -> None:
        for waiting in batch:
            if not waiting.answer.done():
                self._hand_over(waiting.answer, self._answer_here(waiting.ask))

    def _here(self, now: float) -> MemoryStore:
        """This process's share of the calendar."""
        if self._local is None:
            self._local = local_share(self._limits, self.last, self._v(now), self._random, now)
        return self._local

    def _answer_here(self, ask: Ask) -> Grant:
        now = self._clock()
        local = self._here(now)
        if ask.worker == NO_WORKER or self._fleet.fail == "closed":
            return answer_alone(local, self._fleet.fail, ask, now)
        worker = self._rooms.choose(self._names(), self._held())
        if worker is None:
            return local.hint(now, ask.shown, ask.klass)._replace(full=True)
        grant = answer_alone(local, self._fleet.fail, ask, now)
        return grant._replace(worker=worker) if grant.admitted else grant

    def _take_late(self, reply: object) -> None:
        """What comes after its deadline was settled here: what it grants too is taken off this process's share."""
        overdue, self._overdue = self._overdue, None
        if overdue is None:
            return
        told = self._read(reply, overdue)
        granted = sum(grant.admitted for grant in told.grants)
        if self._local is not None and isinstance(self._local.calendar, Calendar):
            self._local.calendar.tokens -= granted


def _check_rate(rate: float | None) -> None:
    check_rate("rate", rate, unit="a number of admissions per second")
    if rate is None:
        raise ConfigurationError("rate", None, "write a number: a fleet without a rate has nothing to share")
