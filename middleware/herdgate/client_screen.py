"""The steps between arrival and verdict for a gate whose limits per client may hold over a whole fleet.

Each step is taken here first and in the fleet second, so that what is refused here costs no call. An arrival is charged
in all of its rates or in none: what was charged here is given back if the fleet refuses.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from herdgate.core.admission import AdmissionControl, CalendarView
from herdgate.core.answers import Admitted, Arrival, ClientRefusal, Denied, Queued
from herdgate.core.grant import Grant

if TYPE_CHECKING:
    from herdgate.stores.redis.fleet_clients import FleetClients, Wants

__all__ = ["ClientScreen"]


class ClientScreen:
    """Screens and settles for one gate.

    Args:
        control: the gate's.
        clients: asks the fleet.
        calendar: gets back what was granted to an arrival that the fleet refuses.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        control: AdmissionControl,
        clients: "FleetClients",
        calendar: CalendarView,
        clock: Callable[[], float],
    ) -> None:
        self._control, self._calendar, self._clock = control, calendar, clock
        self.clients = clients

    async def screen(self, arrival: Arrival, now: float, wants: "Wants") -> Denied | Queued:
        """As `AdmissionControl.screen`; the place of a `Queued` is for the caller to release."""
        screened = self._control.screen_client(arrival, now)
        if isinstance(screened, Denied):
            return screened
        charge = screened.charged and not arrival.counted
        wants = "nothing" if screened.reason == "draining" else wants
        refusal, place = await self.clients.ask(screened.client, wants, charge=charge)
        if refusal is not None:
            return self._refuse(screened, refusal, now if charge else None)
        ready = self._control.screen_room(screened._replace(place=place))
        if isinstance(ready, Denied) and place is not None:
            place.release()
        return ready

    async def settle(self, queued: Queued, grant: Grant, now: float) -> Admitted | Denied:
        """As `AdmissionControl.settle`."""
        if queued.charged or not grant.spent:
            return self._control.settle(queued, grant, now)
        # While the fleet is asked, what was granted has to be counted: to the calendar, this arrival is in.
        counted = self._control.permits.take(queued.client, grant.worker) if grant.admitted else None
        paid: Denied | Queued | None = None
        try:
            paid = await self._pay(queued, now)
        finally:
            if counted is not None:
                counted.release()
                if not isinstance(paid, Queued):
                    self._calendar.give_back()
        return paid if isinstance(paid, Denied) else self._control.settle(paid, grant, now)

    async def settle_reserved(self, queued: Queued, grant: Grant, now: float) -> Denied | str:
        """As `AdmissionControl.settle_reserved`."""
        paid = await self._pay(queued, now) if grant.spent and not queued.charged else queued
        return paid if isinstance(paid, Denied) else self._control.settle_reserved(paid, grant, now)

    async def _pay(self, queued: Queued, now: float) -> Denied | Queued:
        """Charge an arrival whose ticket was paid when it was issued, but is spent."""
        if refusal := self._control.charge(queued.client, now):
            return refusal
        refused, _ = await self.clients.ask(queued.client, "nothing", charge=True)
        return queued._replace(charged=True) if refused is None else self._refuse(queued, refused, now)

    def _refuse(self, queued: Queued, refusal: ClientRefusal, charged_at: float | None) -> Denied:
        if charged_at is not None and refusal.reason == "client_rate":
            self._control.uncharge(queued.client, charged_at, self._clock())
        return self._control.refuse_client(queued, refusal)
