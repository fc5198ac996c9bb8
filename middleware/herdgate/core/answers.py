"""What the decision core is asked and what it answers. The reason names are the only ones; metrics use them too."""

import math
from typing import Final, Literal, NamedTuple

from herdgate.core.clients import Client
from herdgate.core.permits import Permit, Place
from herdgate.core.tickets import Ticket

__all__ = [
    "NOBODY",
    "STATUS",
    "Admitted",
    "Arrival",
    "ClientRefusal",
    "Denied",
    "Invitation",
    "Queued",
    "Quota",
    "Reason",
    "State",
]

LateReason = Literal["auth", "auth_busy", "draining", "full", "no_owner", "upstream"]
"""Reasons found behind the gate, after an admission."""
GateReason = Literal["draining", "origin", "shed", "client_rate", "client_open", "full", "no_owner", "rate"]
"""Reasons of the gate itself."""
Reason = GateReason | LateReason
State = Literal["open", "draining"]

NOBODY: Final = ""
"""In place of a worker's name: one in particular is needed, and there is none now."""

STATUS: Final[dict[Reason, int]] = {
    "draining": 503,
    "origin": 403,
    "shed": 503,
    "client_rate": 429,
    "client_open": 429,
    "full": 503,
    "rate": 429,
    "auth": 401,
    "auth_busy": 503,
    "no_owner": 503,
    "upstream": 502,
}
"""HTTP status of each reason, where nothing else is configured."""


class Arrival(NamedTuple):
    """One handshake or guarded HTTP request that asks to come in.

    Attributes:
        client: who it is.
        ticket: the text it shows, unchecked.
        origin_allowed: False refuses it whatever else holds.
        counted: it was counted against its client's rate before, as when it was held open for its firm slot.
        klass: the name of its class; None, or a name that is none: the last one.
        worker: the only one that can take it, or `NOBODY`. None: any can.
    """

    client: Client
    ticket: str | None = None
    origin_allowed: bool = True
    counted: bool = False
    klass: str | None = None
    worker: str | None = None


class Quota(NamedTuple):
    """The per-client limit behind a refusal: `limit` arrivals per `window_s` seconds."""

    limit: int
    window_s: int

    @classmethod
    def of(cls, rate: float, burst: float) -> "Quota":
        """That of `rate` arrivals per second, `burst` at once."""
        return cls(int(burst), math.ceil(burst / rate) if rate else 0)


class ClientRefusal(NamedTuple):
    """A client's limit over the whole fleet speaks against its arrival.

    Attributes:
        wait_s: seconds until the rate allows another. None: the limits cannot be asked, and nobody is let in meanwhile.
        quota: of the rate it is over.
    """

    reason: Literal["client_rate", "client_open"]
    wait_s: float | None = None
    quota: Quota | None = None


class Queued(NamedTuple):
    """Nothing here speaks against this arrival: the calendar decides, or, with a `reason`, only gives a hint.

    Attributes:
        shown: its ticket, if the signature is good.
        charged: it was counted against its client's rate.
        klass: its class, by position.
        place: what it holds in the fleet; for whoever queued it to release, unless it is admitted.
        worker: as of the arrival.
    """

    client: Client
    shown: Ticket | None
    charged: bool
    reason: Literal["draining", "full", "no_owner"] | None = None
    klass: int = 0
    place: Place | None = None
    worker: str | None = None


class Admitted(NamedTuple):
    """Come in; the permit must be released when the socket is gone."""

    permit: Permit


class Invitation(NamedTuple):
    """When the client of a socket that is closed for no fault of its own comes back.

    Attributes:
        retry_s: seconds until then.
        ticket: text to show then.
    """

    retry_s: float
    ticket: str | None


class Denied(NamedTuple):
    """Not now.

    Attributes:
        retry_s: seconds until it makes sense to come back. None: it never does.
        ticket: text to show then.
        firm: the ticket is a firm slot, which may be worth waiting for.
        quota: set for `client_rate`.
    """

    reason: Reason
    retry_s: float | None = None
    ticket: str | None = None
    firm: bool = False
    quota: Quota | None = None
