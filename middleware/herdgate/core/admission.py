"""Admission control: one decision in two halves, so that every store of the calendar answers the same question.

`screen` does what one process can decide alone and either refuses or queues the arrival for the calendar; `settle`
applies the calendar's answer. The steps run most specific first, and a refusal consumes nothing of the steps after it:

    1 draining   2 origin   3 admit fraction   4 client rate   5 client's open sockets   6 permits, worker   7 calendar

Limits per client of scope `fleet` are not known here: a gate that has some calls `screen_client`, asks its fleet for
the steps 4 and 5, and goes on with `screen_room`.

A permit is taken in `settle`, when the calendar has granted, never while an arrival is queued. Pure: `now` (monotonic
seconds) and `random` (uniform in [0, 1)) are arguments.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Protocol

from herdgate.core.answers import (
    NOBODY,
    Admitted,
    Arrival,
    ClientRefusal,
    Denied,
    Invitation,
    LateReason,
    Queued,
    Quota,
    Reason,
    State,
)
from herdgate.core.client_rates import ClientRates
from herdgate.core.clients import Client
from herdgate.core.grant import Grant
from herdgate.core.limits import Limits
from herdgate.core.numbers import check_number
from herdgate.core.permits import Permits
from herdgate.core.tickets import Ticket, TicketSigner

__all__ = ["FULL_RETRY_S", "AdmissionControl", "CalendarView", "keep_share"]

FULL_RETRY_S = (1.0, 2.0)
_SHED_RETRY_S = (30.0, 60.0)
_OPEN_RETRY_S = (5.0, 10.0)
_BUSY_RETRY_S = (1.0, 1.25)
_RATE_RETRY_SPREAD = 0.1


class CalendarView(Protocol):
    """What admission control needs of the calendar it does not own."""

    def is_due(self, ticket: Ticket, now: float) -> bool:
        """True from the ticket's time to the end of its grace."""
        ...

    def give_back(self) -> None:
        """Undo one grant that was not used."""
        ...


def keep_share(key: str) -> float:
    """Where a client key stands in [0, 1): the same on every gateway and in every process."""
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogateescape"), digest_size=8).digest()) / (1 << 64)


class AdmissionControl:
    """The rules of one gate and the counts they need.

    Attributes:
        state: `draining` refuses every arrival, with a hint.
        admit_fraction: share of client keys let past.
        signers: of tickets, one for each class.
        admitted: arrivals admitted so far, by class.
        denied: arrivals refused so far, by reason.
    """

    def __init__(
        self, limits: Limits, signers: Sequence[TicketSigner], calendar: CalendarView, random: Callable[[], float]
    ) -> None:
        self.state: State = "open"
        self.admitted: Counter[str] = Counter()
        self.denied: Counter[Reason] = Counter()
        self.permits = Permits(limits)
        self._rates = ClientRates(limits)
        self._calendar = calendar
        self._random = random
        self.set_limits(limits, signers)

    def set_limits(self, limits: Limits, signers: Sequence[TicketSigner]) -> None:
        """Other rules from now on; counts go on, and sockets above a cap stay.

        Raises:
            ConfigurationError: `max_clients` is another one: the tables have their size.
        """
        self._rates.set_limits(limits)
        self.permits.set_limits(limits)
        self.admit_fraction = limits.admit_fraction
        self.signers = signers
        self._classes = [klass.name for klass in limits.classes]
        self._positions: dict[str | None, int] = {name: place for place, name in enumerate(self._classes)}

    def set_admit_fraction(self, fraction: float) -> None:
        """Let this share of client keys past, from now on.

        Raises:
            ConfigurationError: not a number from 0 to 1.
        """
        check_number("admit_fraction", fraction, least=0, most=1, unit="a share")
        self.admit_fraction = fraction

    @property
    def client_keys(self) -> int:
        """Client keys remembered, in all tables."""
        return len(self.permits.sockets) + len(self._rates)

    def position(self, klass: str | None) -> int:
        """Where this class stands; the last one for no class, or one that is not there."""
        return self._positions.get(klass, len(self._classes) - 1)

    def screen(self, arrival: Arrival, now: float) -> Denied | Queued:
        """Decide what needs no calendar."""
        screened = self.screen_client(arrival, now)
        return screened if isinstance(screened, Denied) else self.screen_room(screened)

    def screen_client(self, arrival: Arrival, now: float) -> Denied | Queued:
        """The steps 1 to 4: what is counted here against the client's rates was not refused."""
        client, text, origin_allowed, counted, name, worker = arrival
        klass = self.position(name)
        shown = self.signers[klass].read(text) if text else None
        if self.state == "draining":
            return self._screen_draining(client, shown, klass, now)
        if not origin_allowed:
            return self._deny("origin")
        if self.admit_fraction < 1 and keep_share(client.key) >= self.admit_fraction:
            return self._deny("shed", self._between(*_SHED_RETRY_S))
        charged = not (shown and self._calendar.is_due(shown, now))  # a due ticket was paid when it was issued
        if charged and not counted and (refusal := self.charge(client, now)):
            return refusal
        return Queued(client, shown, charged, None, klass, worker=worker)

    def screen_room(self, queued: Queued) -> Denied | Queued:
        """The steps 5 and 6, for an arrival that is past the others."""
        if queued.reason is not None:
            return queued
        if not self.permits.sockets.has_room(queued.client):
            return self._deny("client_open", self._between(*_OPEN_RETRY_S))
        if queued.worker == NOBODY:
            return queued._replace(reason="no_owner")
        return queued if self.permits.has_room() else queued._replace(reason="full")

    def refuse_client(self, queued: Queued, refusal: ClientRefusal) -> Denied:
        """Deny an arrival that is over a limit of its client in the whole fleet."""
        if queued.reason == "draining":
            return self._deny("draining", self._between(*_SHED_RETRY_S))
        reason, wait_s, quota = refusal
        if reason == "client_open":
            return self._deny(reason, self._between(*_OPEN_RETRY_S))
        if wait_s is None:
            return self._deny(reason, self._between(*FULL_RETRY_S))
        return self._deny(reason, wait_s * self._between(1, 1 + _RATE_RETRY_SPREAD), quota=quota)

    def _screen_draining(self, client: Client, shown: Ticket | None, klass: int, now: float) -> Denied | Queued:
        """A hint, paid for like any other; without one for whoever comes too often, or it could hoard them."""
        charged = not (shown and self._calendar.is_due(shown, now))
        if charged and self._rates.wait(client, now):
            return self._deny("draining", self._between(*_SHED_RETRY_S))
        if charged:
            self.charge(client, now)
        return Queued(client, shown, charged, "draining", klass)

    def settle(self, queued: Queued, grant: Grant, now: float) -> Admitted | Denied:
        """Apply the calendar's answer: take a permit, or say when to come back."""
        refusal = self._refuse(queued, grant, now)
        if refusal:
            if grant.admitted:
                self._calendar.give_back()
            return refusal
        self.admitted[self._classes[queued.klass]] += 1
        return Admitted(self.permits.take(queued.client, grant.worker, queued.place))

    def settle_reserved(self, queued: Queued, grant: Grant, now: float) -> Denied | str:
        """As `settle`, for who only asks whether to come: no permit, but the text of a firm slot to come in with."""
        refusal = self._refuse(queued, grant, now)
        if refusal:
            return refusal
        return self.signers[queued.klass].sign(grant.ticket) if grant.ticket else ""

    def refuse(self, reason: LateReason, grant: Grant | None, klass: int) -> Denied:
        """Deny an arrival that was admitted, for a reason found behind the gate; without a grant, for good.

        Nobody is called back to a busy authentication within a second: at a high rate its firm slot is a moment away.
        """
        if grant is None:
            return self._deny(reason)
        told_s = grant.told_s
        if reason == "auth_busy" and told_s < _BUSY_RETRY_S[0]:
            told_s += self._between(*_BUSY_RETRY_S)
        return self._deny(reason, told_s, grant.ticket, klass=klass)

    def invite(self, grant: Grant, klass: int) -> Invitation:
        """Tell the client of a socket that is about to be closed when to come back."""
        return Invitation(grant.told_s, self.signers[klass].sign(grant.ticket) if grant.ticket else None)

    def _refuse(self, queued: Queued, grant: Grant, now: float) -> Denied | None:
        client, _, charged, reason, klass, _, _ = queued
        if grant.spent and not charged and (refusal := self.charge(client, now)):
            return refusal
        if reason or not grant.admitted:
            return self._deny(reason or ("full" if grant.full else "rate"), grant.told_s, grant.ticket, klass=klass)
        if not self.permits.sockets.has_room(client):
            return self._deny("client_open", self._between(*_OPEN_RETRY_S))
        if not self.permits.has_room():
            return self._deny("full", self._between(*FULL_RETRY_S))
        return None

    def charge(self, client: Client, now: float) -> Denied | None:
        """Count one arrival against every rate that holds for this client here, or against none and refuse."""
        over = self._rates.charge(client, now)
        if over is None:
            return None
        wait, rate = over
        quota = Quota.of(rate.rate, rate.burst)
        return self._deny("client_rate", wait * self._between(1, 1 + _RATE_RETRY_SPREAD), quota=quota)

    def uncharge(self, client: Client, charged_at: float, now: float) -> None:
        """Undo one `charge`: the fleet refused what was within the rates here."""
        self._rates.give_back(client, charged_at, now)

    def _deny(
        self,
        reason: Reason,
        retry_s: float | None = None,
        ticket: Ticket | None = None,
        quota: Quota | None = None,
        klass: int = 0,
    ) -> Denied:
        self.denied[reason] += 1
        if ticket is None:
            return Denied(reason, retry_s, quota=quota)
        return Denied(reason, retry_s, self.signers[klass].sign(ticket), ticket.kind == "firm")

    def _between(self, low: float, high: float) -> float:
        return low + (high - low) * self._random()
