"""The limits per client of scope `fleet`, for one gate.

arrival -> its tiers -> ClientStore -> within all: a place, if it comes in to stay
                                    -> over one: why, and for how long
        Redis away, by the fleet's `fail` -> local_share: this process's share of each limit
                                          -> closed: nobody   -> open: everybody
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

from herdgate.core.answers import ClientRefusal, Quota
from herdgate.core.client_rates import ClientRates
from herdgate.core.clients import Client
from herdgate.core.limits import ClientLimits, Limits
from herdgate.core.numbers import LEAST_RATE
from herdgate.core.tiers import Tier, fleet_scopes, fleet_tiers
from herdgate.fleet import Fail, Fleet
from herdgate.stores.redis.client_store import ClientStore
from herdgate.stores.redis.client_wire import NO_PLACE, ClientAsk, Told, burst_of, cap_of, rate_of
from herdgate.stores.redis.places import HeldPlace

__all__ = ["ClientAnswer", "FleetClients", "Wants", "open_clients"]

Wants = Literal["place", "room", "nothing"]
"""What an arrival asks of the caps: a place below them, whether there is one, or nothing."""


class ClientAnswer(NamedTuple):
    """What the fleet says to an arrival: it may pass, with its place if it wants one; or why not."""

    refusal: ClientRefusal | None = None
    place: HeldPlace | None = None


class FleetClients:
    """Asks for one gate.

    Args:
        store: of this process; gates beside each other have the same one.
        route: names the gate's own limits among those of the fleet.
        fail: what becomes of arrivals while Redis is away.
        gateways: how many processes share the limits, as last known.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        store: ClientStore,
        limits: Limits,
        *,
        route: str,
        fail: Fail,
        gateways: Callable[[], int],
        clock: Callable[[], float],
    ) -> None:
        self._store, self._route, self._fail, self._gateways, self._clock = store, route, fail, gateways, clock
        self._limits = limits
        self._is_used = bool(fleet_scopes(limits))
        self._shared_by = 1
        self._share = ClientRates(_share_of(limits, 1))

    def beside(self, limits: Limits, route: str) -> "FleetClients":
        """The same for another gate of this process."""
        return FleetClients(
            self._store, limits, route=route, fail=self._fail, gateways=self._gateways, clock=self._clock
        )

    def start(self) -> None:
        """Connect, in the running loop, if any limit needs it."""
        if self._is_used:
            self._store.start()

    async def aclose(self) -> None:
        """Close what this gate shares with those beside it."""
        await self._store.aclose()

    def set_limits(self, limits: Limits) -> None:
        """Other limits from now on; sockets above a cap stay, and are counted under it.

        Only those are known that came while a limit per client had the scope `fleet`.
        """
        self._limits = limits
        self._is_used = bool(fleet_scopes(limits))
        self._share.set_limits(_share_of(limits, self._shared_by))
        self._store.places.rename(self._route, lambda client: self._sets(self._tiers(client)))

    def hold(self, client: Client) -> HeldPlace | None:
        """A place whatever the caps say."""
        if not self._is_used:
            return None
        place = self._store.places.make(self._route, client, self._sets(self._tiers(client)))
        self._store.places.hold(place, is_known=False)
        return place

    async def ask(self, client: Client, wants: Wants, *, charge: bool) -> ClientAnswer:
        """Count an arrival against its rates, if `charge`, and then its caps; what it is refused by counts nothing."""
        if not self._is_used:
            return ClientAnswer()
        limits, tiers = self._limits, self._tiers(client)
        place = self._store.places.make(self._route, client, self._sets(tiers)) if wants == "place" else None
        ask = self._ask_of(tiers, place, caps=wants != "nothing", charge=charge)
        if not ask.rates and not ask.caps:
            return self._answer(None, place, is_known=False)
        if place is not None:
            place.is_sent = True
        try:
            told = await self._store.ask(ask)
        except BaseException:
            if place is not None:
                place.release()
            raise
        if told is None:
            return self._answer(self._refuse_here(client, tiers, ask), place, is_known=False)
        return self._answer(_refusal(told, tiers), place, is_known=limits is self._limits)

    def _answer(self, refusal: ClientRefusal | None, place: HeldPlace | None, *, is_known: bool) -> ClientAnswer:
        if refusal is None and place is not None:
            if not is_known:  # other limits may have been set while it was asked for
                place.names = self._sets(self._tiers(place.client))
            self._store.places.hold(place, is_known=is_known)
        elif place is not None and not is_known:
            place.release()  # Redis may have it
        return ClientAnswer(refusal, None if refusal else place)

    def _tiers(self, client: Client) -> list[Tier]:
        return fleet_tiers(self._limits, client)

    def _sets(self, tiers: list[Tier]) -> list[str]:
        return [cap.name for tier in tiers if (cap := cap_of(self._route, tier))]

    def _ask_of(self, tiers: list[Tier], place: HeldPlace | None, *, caps: bool, charge: bool) -> ClientAsk:
        return ClientAsk(
            place.id if place else NO_PLACE,
            [rate for tier in tiers if (rate := rate_of(self._route, tier))] if charge else [],
            [cap for tier in tiers if (cap := cap_of(self._route, tier))] if caps else [],
        )

    def _refuse_here(self, client: Client, tiers: list[Tier], ask: ClientAsk) -> ClientRefusal | None:
        """What this process says while Redis is away."""
        if self._fail == "open":
            return None
        if self._fail == "closed":
            return ClientRefusal("client_rate")
        self._divide(max(1, self._gateways()))
        if ask.rates and (refusal := self._charge_here(client)):
            return refusal
        count = self._store.places.count
        if all(count(name) < _divided_cap(cap, self._shared_by) for name, cap in ask.caps):
            return None
        return ClientRefusal("client_open")

    def _divide(self, gateways: int) -> None:
        if gateways != self._shared_by:
            self._shared_by = gateways
            self._share.set_limits(_share_of(self._limits, gateways))

    def _charge_here(self, client: Client) -> ClientRefusal | None:
        now = self._clock()
        over = self._share.wait(client, now)
        if over is None:
            self._share.charge(client, now)
            return None
        wait_s, rate = over
        return ClientRefusal("client_rate", wait_s, Quota.of(rate.rate, rate.burst))


def open_clients(
    fleet: Fleet, limits: Limits, route: str, gateways: Callable[[], int], clock: Callable[[], float]
) -> FleetClients:
    """Those of the first gate of a process; see `FleetClients`."""
    store = ClientStore(fleet.redis, fleet.name, clock)
    return FleetClients(store, limits, route=route, fail=fleet.fail, gateways=gateways, clock=clock)


def _refusal(told: Told, tiers: list[Tier]) -> ClientRefusal | None:
    if told.over is not None:
        tier = [tier for tier in tiers if tier.limits.rate is not None][told.over]
        return ClientRefusal("client_rate", told.wait_s, Quota.of(tier.limits.rate or 0.0, burst_of(tier)))
    return ClientRefusal("client_open") if told.is_full else None


def _share_of(limits: Limits, gateways: int) -> Limits:
    """The rates per client that one of several processes allows alone: of those of the fleet, its part."""
    return replace(
        limits,
        client=_tier_share(limits.client, gateways),
        anonymous=limits.anonymous and _tier_share(limits.anonymous, gateways),
        address=_tier_share(limits.address, gateways),
        network=_tier_share(limits.network, gateways),
    )


def _tier_share(tier: ClientLimits, gateways: int) -> ClientLimits:
    if tier.scope == "process" or tier.rate is None:
        return ClientLimits()
    rate = tier.rate and max(LEAST_RATE, tier.rate / gateways)
    return ClientLimits(rate, None if tier.burst is None else max(1.0, tier.burst / gateways))


def _divided_cap(cap: int, gateways: int) -> int:
    return cap and max(1, cap // gateways)
