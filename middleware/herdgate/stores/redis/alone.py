"""How a process of a fleet decides while Redis is away: its local share, the rooms it was told of, what it has used."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from herdgate.core.grant import Grant
from herdgate.core.limits import Limits
from herdgate.fleet import Fleet
from herdgate.stores.redis.carried import Carried, UsedTickets
from herdgate.stores.redis.errors import LinkError
from herdgate.stores.redis.held import Held
from herdgate.stores.redis.local_rooms import LocalRooms
from herdgate.stores.redis.local_share import LocalShare
from herdgate.stores.redis.orders import Orders
from herdgate.stores.redis.scripts import Script
from herdgate.stores.redis.wire import ANY_WORKER, NO_WORKER, Ask, Reply

if TYPE_CHECKING:
    from herdgate.stores.parent.link import ParentLink
    from herdgate.stores.redis.link import Link

__all__ = ["Alone"]

MEMBERS = Script.load("members")


class Alone:
    """Of one process.

    Args:
        limits: of the whole fleet.
        carried: what is known of the fleet.
        orders: what the fleet is still to be told; it holds here already.
        held: what this process holds.
        random: uniform numbers in [0, 1).
        v: refill time of the fleet at a monotonic time.

    Attributes:
        share: None while Redis answers.
        used: tickets that have admitted somebody here.
        siblings: processes that start together with this one, itself included.
        members: processes of a fleet whose calls fail, as far as was told.
    """

    def __init__(
        self,
        limits: Limits,
        fleet: Fleet,
        carried: Carried,
        orders: Orders,
        held: Held,
        *,
        random: Callable[[], float],
        v: Callable[[float], float],
    ) -> None:
        self._limits = limits
        self._fleet, self._carried, self._orders, self._held = fleet, carried, orders, held
        self._random, self._v = random, v
        self._rooms = LocalRooms()
        self.share: LocalShare | None = None
        self.used = UsedTickets()
        self.siblings = 1
        self.members = 0

    @property
    def gateways(self) -> int:
        """Processes to share the rate with, this one included."""
        last = self._carried.last
        return max(1, self.siblings, self.members, last.gateways if last else 0)

    def begin(self, now: float) -> LocalShare:
        """This process's share of the calendar, which begins with the first call."""
        if self.share is None:
            self.share = LocalShare(
                self._limits,
                self._carried.last,
                self._v(now),
                self._random,
                now,
                gateways=self.gateways,
                rate=self._orders.rate,
                fail=self._fleet.fail,
            )
        return self.share

    async def count_members(self, link: "Link | ParentLink", key: str, gateway: str) -> None:
        """Where no call was ever answered, ask how many share the rate, as this process's share has not begun.

        Args:
            key: of the calendar.
            gateway: this process's name.
        """
        if self._carried.last is not None or self.share is not None:
            return
        with suppress(LinkError):
            others = await link.call(MEMBERS, [key], [gateway])
            self.members = 1 + others if isinstance(others, int) else 0

    def end(self) -> None:
        """Redis has answered in time."""
        self.share = None
        self.members = 0

    def answer(self, ask: Ask, workers: Sequence[str], now: float) -> Grant:
        """What this process says to an arrival.

        Args:
            workers: that it may go to, if any can take it.
        """
        share, worker = self.begin(now), None
        if ask.worker != NO_WORKER and self._fleet.fail != "closed":
            allowed = workers if ask.worker == ANY_WORKER else (ask.worker,)
            worker = self._rooms.choose(allowed, self._held.by_worker())
            if worker is None:
                return share.refuse(ask, now)._replace(full=True)
        grant = share.answer(ask, now)
        if grant.admitted and ask.mode == "arrive" and ask.shown is not None and not grant.spent:
            self.used.add(ask.shown, ask.klass)
        return grant._replace(worker=worker) if grant.admitted else grant

    def learn(self, told: Reply, refill: float, now: float) -> None:
        """Take over what a reply tells, which may have come too late.

        Args:
            refill: handed out here when its call was made.
        """
        if self.share is not None and not self.share.knows_fleet:
            self.share = None
            self.begin(now)
        elif self.share is not None:
            self.share.heard(refill)
            self.share.share_with(self.gateways, told.rate if self._orders.rate is None else self._orders.rate)
        granted = Counter(grant.worker for grant in told.grants if grant.worker)
        self._rooms.learn(told, self._held.by_worker() + granted)

    def set_rate(self, rate: float, now: float) -> None:
        """The whole fleet is to have this rate from now on."""
        if self.share is not None:
            self.share.set_rate(rate, now)

    def set_limits(self, limits: Limits, now: float) -> None:
        """Take over burst, classes and times from now on."""
        self._limits = limits
        if self.share is not None:
            self.share.set_limits(limits, now)
