"""All counts of a gate at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from herdgate.core.answers import Reason, State

__all__ = ["ClassSnapshot", "FleetSnapshot", "GateSnapshot"]


@dataclass(frozen=True, slots=True)
class FleetSnapshot:
    """The fleet of a gate, as last told.

    Attributes:
        is_up: Redis answers; if not, this process decides alone, as `Fleet.fail` says.
        gateways: processes that share the calendar.
        pending: set-ups in progress in all of them.
        open: sockets of all of them.
        calls: calls made to Redis so far.
        rooms: sockets that each worker may still get, by its name; inf: no limit, -1: it drains. Empty: not known.
    """

    is_up: bool
    gateways: int
    pending: int
    open: int
    calls: int
    rooms: Mapping[str, float] = field(default_factory=dict)


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
        fleet: None for a gate of one process.
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
    fleet: FleetSnapshot | None = None
