"""One calendar for a fleet, in Redis: arrivals are settled in batches, one call of one script at a time.

    grant -> batch -> call (at most 50 a second) -> decide.lua -> reply -> the whole batch is settled

While a call is under way the next batch gathers. A call that is not answered in time, or cannot be made, leaves its
batch to the *local share*: a calendar of this process alone, which begins when the first call fails. Nothing here ever
closes a socket.

Rules: a permit is counted from the moment it is granted; what was granted to a client that has gone is given back; a
grant that comes after its deadline is taken off the local share, as its arrival was settled there. While calls are
answered too late they are made without arrivals.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from herdgate.core.answers import Queued
from herdgate.core.errors import ConfigurationError
from herdgate.core.grant import Grant
from herdgate.core.limits import Limits
from herdgate.core.numbers import check_rate
from herdgate.core.tickets import Ticket
from herdgate.fleet import MEANWHILE, Fleet
from herdgate.snapshot import FleetSnapshot
from herdgate.stores.links import open_link
from herdgate.stores.redis import outages
from herdgate.stores.redis.alone import Alone
from herdgate.stores.redis.batching import Batcher, Waiting
from herdgate.stores.redis.carried import Carried, Used
from herdgate.stores.redis.complaints import Complaints
from herdgate.stores.redis.errors import LinkError, LinkTimeout, NoReply, ScriptFailed
from herdgate.stores.redis.held import Held
from herdgate.stores.redis.orders import Orders
from herdgate.stores.redis.scripts import Script
from herdgate.stores.redis.shared_secret import SharedSecret
from herdgate.stores.redis.wire import (
    ANY_WORKER,
    NO_WORKER,
    Ask,
    Mode,
    Reply,
    head_of_settings,
    named,
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
    orders: Mapping[str, float]
    used: Sequence[Used]
    refill: float  # handed out alone by then
    at: float


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
        self._held = Held()
        self.permits = self._held.permits
        self.workers: Callable[[], Sequence[str]] | None = None
        self._link = open_link(fleet.redis)
        self._limits = limits
        self._prefix = f"{{herdgate:{fleet.name}}}"
        self._calendar_key = f"{self._prefix}:calendar"
        self._settled = head_of_settings(limits, fleet)
        self._fleet = fleet
        self._random, self._clock, self._wall_clock = random, clock, wall_clock
        self._carried = Carried()
        self._batcher = Batcher(self._settle, clock)
        self._overdue: _Call | None = None
        self._is_late = False  # the last call was overdue, and none was answered in time since
        self._orders = Orders()
        self._alone = Alone(limits, fleet, self._carried, self._orders, self._held, random=random, v=self._v)
        self._given_back = 0
        self._sequence = 0
        self._secret = SharedSecret(self._link, f"{self._prefix}:secret")
        self._complaints = Complaints(fleet, f"{self._prefix}:*", clock)
        self._link.on_late = self._take_late

    @property
    def last(self) -> Reply | None:
        """The state of the fleet as last told; None before the first reply."""
        return self._carried.last

    @property
    def fraction(self) -> float | None:
        """The admitted share that holds: as ordered here, or as the fleet has agreed on; None before it was told."""
        ordered, last = self._orders.fraction, self.last
        return ordered if ordered is not None else last.fraction if last else None

    def state(self, now: float) -> CalendarState:
        """The calendar that decides now: the fleet's as last told, or this process's own."""
        share = self._alone.share
        return self._carried.state(self._limits, now) if share is None else share.state(now)

    def snapshot(self) -> FleetSnapshot:
        """The fleet as last told."""
        last = self.last
        counts = (last.gateways, last.pending, last.open) if last else (0, 0, 0)
        is_up = self._alone.share is None and last is not None and self._clock() - self._carried.at < STALE_S
        return FleetSnapshot(is_up, *counts, self._link.calls, last.rooms if last else {})

    # For the gate

    async def grant(self, queued: Queued, now: float) -> Grant:
        """The calendar's answer; an arrival queued for a hint only gets one."""
        return await self._ask("arrive" if queued.reason is None else "hint", queued.klass, queued.shown, queued.worker)

    def begin(self, queued: Queued, now: float) -> Grant | asyncio.Future[Grant]:
        """As `grant`, without waiting: the answer, or where it will be; then call `used` once.

        Cancelled before it is answered, whatever is granted is given back.
        """
        mode: Mode = "arrive" if queued.reason is None else "hint"
        return self._begin(mode, queued.klass, queued.shown, queued.worker)

    def used(self, grant: Grant) -> None:
        """A grant from `begin` that came later is counted by its permit now, or was given back."""
        if grant.admitted:
            self._held.count_unsettled(grant, -1)

    async def reserve(self, queued: Queued, now: float) -> Grant:
        """As `grant`, but who would be admitted gets a firm slot for this moment instead."""
        return await self._ask(
            "reserve" if queued.reason is None else "hint", queued.klass, queued.shown, queued.worker
        )

    async def hint(self, now: float, shown: Ticket | None = None, klass: int = 0) -> Grant:
        """A hint for an arrival that may not come in for another reason, not too soon."""
        return await self._ask("hint", klass, shown)

    async def defer(self, now: float, klass: int = 0) -> Grant:
        """A firm slot for one grant that could not be used, which stays spent."""
        return await self._ask("defer", klass)

    def give_back(self) -> None:
        """Undo one grant that was not used."""
        if self._alone.share is not None:
            self._alone.share.give_back()
        else:
            self._given_back += 1

    def is_due(self, ticket: Ticket, now: float) -> bool:
        """True from the ticket's time to the end of its grace, as far as can be told from here."""
        if self._alone.share is not None:
            return self._alone.share.is_due(ticket, now)
        late, speed = self._v(now) - ticket.at_ms / 1000, self._carried.speed
        return speed > 0 and 0 <= late <= self._limits.grace_s * max(1.0, speed)

    def set_rate(self, rate: float | None, now: float) -> None:
        """Change the rate of the whole fleet, with the next call, and what is decided here meanwhile.

        Raises:
            ConfigurationError: None, negative, NaN, infinite or not a number.
        """
        _check_rate(rate)
        self._orders.set_rate(rate or 0.0)
        self._batcher.hurry()
        self._alone.set_rate(rate or 0.0, now)

    def set_fraction(self, fraction: float) -> None:
        """Change the admitted share on the whole fleet, with the next call; here at once."""
        self._orders.set_fraction(fraction)
        self._batcher.hurry()

    def set_limits(self, limits: Limits, now: float) -> None:
        """Take over burst, classes and times; and what is another rate or admitted share, for the whole fleet."""
        _check_rate(limits.rate)
        self._alone.set_limits(limits, now)
        if limits.rate != self._limits.rate:
            self._orders.configure(limits.rate or 0.0)
            self._alone.set_rate(limits.rate or 0.0, now)
        if limits.admit_fraction != self._limits.admit_fraction:
            self._orders.set_fraction(limits.admit_fraction)
        self._limits = limits
        self._settled = head_of_settings(limits, self._fleet)
        self._batcher.hurry()

    def share_secret(self, proposed: bytes, take: Callable[[Sequence[bytes]], None]) -> None:
        """Agree with the fleet on a secret: `take` is called with it, now and whenever it is another one."""
        self._secret.share(proposed, take)

    # Life

    def separate(self) -> None:
        """This process is a fork of another, which has not started yet: it goes by a name of its own."""
        self.gateway = secrets.token_hex(8)

    def start(self, siblings: int = 1) -> None:
        """Call from now on, in the running loop; harmless to repeat.

        Args:
            siblings: processes that start together with this one, itself included: its part of the rate until the
                fleet has said how many it is.
        """
        self._alone.siblings = max(self._alone.siblings, siblings)
        self._batcher.start(self._join)

    async def aclose(self) -> None:
        """Stop calling, leave the fleet, and close the link. Whoever waits is settled here."""
        self._settle_here(await self._batcher.stop())
        if self.last is not None:
            with suppress(Exception):  # it is forgotten all the same, later
                await self._call((), leave=True)
        await self._link.aclose()

    # Inside

    def _v(self, now: float) -> float:
        """Refill time of the fleet: that of the last reply plus this process's clock since."""
        v = self._carried.v(now)
        return self._wall_clock() if v is None else v

    def _begin(self, mode: Mode, klass: int, shown: Ticket | None, worker: str | None) -> Grant | asyncio.Future[Grant]:
        self.start()
        needs_worker = self.workers is not None and mode in ("arrive", "reserve")
        ask = Ask(mode, klass, shown, (ANY_WORKER if worker is None else worker) if needs_worker else NO_WORKER)
        if self._alone.share is not None and (self._is_late or not self._link.is_up):
            return self._answer_here(ask)
        return self._batcher.add(ask).answer

    async def _ask(self, mode: Mode, klass: int, shown: Ticket | None = None, worker: str | None = None) -> Grant:
        begun = self._begin(mode, klass, shown, worker)
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
            outages.say(error, MEANWHILE[self._fleet.fail])

    async def _settle(self, batch: Sequence[Waiting]) -> None:
        if self._is_late:  # what is granted too late is granted to nobody
            self._settle_here(batch)
            batch = ()
        try:
            await self._call(batch)
        except LinkError as error:
            if isinstance(error, (ScriptFailed, NoReply)):
                self._complaints.say(error)
            if isinstance(error, ScriptFailed):
                await self._alone.count_members(self._link, self._calendar_key, self.gateway)
            self._settle_here(batch)
        except asyncio.CancelledError:
            self._settle_here(batch)
            raise
        except Exception as error:  # noqa: BLE001 - it is said, once
            self._complaints.say(error, traceback=True)
            self._settle_here(batch)

    async def _call(self, batch: Sequence[Waiting], **more: Any) -> None:
        asks = [waiting.ask for waiting in batch]
        workers = named(asks, self._names())
        data, order = pack_batch(asks, workers)
        given_back, self._given_back = self._given_back, 0
        share, now = self._alone.share, self._clock()
        refill = share.refill_by(now) if share else 0.0
        call = _Call(asks, order, workers, self._orders.pending(), self._alone.used.all(), refill, now)
        try:
            head = pack_head(self._head(call, given_back) | more, self._settled)
            told = self._read(await self._link.call(DECIDE, [self._calendar_key], [head, data]), call)
        except LinkTimeout:
            self._overdue, self._is_late = call, True
            raise
        except Exception:
            self._given_back += given_back
            raise
        self._alone.end()
        self._overdue, self._is_late = None, False
        for position, grant in zip(order, told.grants, strict=True):
            self._hand_over(batch[position].answer, grant)
        await self._secret.agree(told.issuer)

    def _names(self) -> Sequence[str]:
        return tuple(self.workers()) if self.workers is not None else ()

    def _head(self, call: _Call, given_back: int) -> dict[str, Any]:
        self._sequence += 1
        return {
            "gateway": self.gateway,
            "sequence": self._sequence,
            "seed": 1 + int(self._random() * MOST_SEED),
            "issuer": 1 + int(self._random() * 0xFFFFFFFE),
            "given_back": given_back,
            "counts": self._held.counts(),
            "workers": call.workers,
            "used": call.used,
            **self._carried.head(call.at, self._alone.share),
            **call.orders,
        }

    def _read(self, reply: Any, call: _Call) -> Reply:
        try:
            told = read_reply(reply, call.asks, call.order, call.workers)
        except ValueError as error:
            raise NoReply(self._link.where, f"what came is no reply: {error}") from error
        is_first = self.last is None
        self._carried.learn(told, call.at, self._clock())
        self._orders.told(call.orders)
        self._alone.used.told(call.used)
        self._alone.learn(told, call.refill, self._carried.at)
        if is_first and "set_rate" not in call.orders and told.configured != self._limits.rate:
            self._orders.configure(self._limits.rate or 0.0)
            self._batcher.hurry()
        return told

    def _hand_over(self, answer: asyncio.Future[Grant], grant: Grant) -> None:
        if answer.done():  # its client has gone meanwhile
            if grant.admitted:
                self.give_back()
            return
        if grant.admitted:
            self._held.count_unsettled(grant, 1)
        answer.set_result(grant)

    def _settle_here(self, batch: Sequence[Waiting]) -> None:
        """Settle a batch alone, which may be empty: this process's share begins with the first call that fails."""
        self._alone.begin(self._clock())
        for waiting in batch:
            if not waiting.answer.done():
                self._hand_over(waiting.answer, self._answer_here(waiting.ask))

    def _answer_here(self, ask: Ask) -> Grant:
        return self._alone.answer(ask, self._names() if ask.worker == ANY_WORKER else (), self._clock())

    def _take_late(self, reply: object) -> None:
        """What comes after its deadline was settled here: what it grants too is taken off this process's share."""
        overdue, self._overdue = self._overdue, None
        if overdue is None:
            return
        try:
            told = self._read(reply, overdue)
        except NoReply as error:
            self._complaints.say(error)
            return
        if self._alone.share is not None:
            self._alone.share.take_off(sum(grant.admitted for grant in told.grants))
        self._batcher.hurry()


def _check_rate(rate: float | None) -> None:
    check_rate("rate", rate, unit="a number of admissions per second")
    if rate is None:
        raise ConfigurationError("rate", None, "write a number: a fleet without a rate has nothing to share")
