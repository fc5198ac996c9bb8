"""What the admin listener sees of the gateway, and all it may change.

The main loop publishes a frozen `Status` about once a second; the admin thread reads the latest one and asks the main
loop for nothing, so that its answers never wait behind a crowd. A status that grows old is itself the sign that the
main loop is blocked.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from herdgate import GateSnapshot
from herdgate_gateway.drain.status import DrainStatus

__all__ = ["ChildState", "ChildStatus", "Status", "View", "WorkerStatus", "children_not_ready", "reason_not_ready"]

ChildState = Literal["ready", "starting", "blocked", "stopping", "down"]


class WorkerStatus(Protocol):
    """One worker of the pool at one moment."""

    @property
    def url(self) -> str:
        """Where it listens."""

    @property
    def open(self) -> int:
        """Sockets relayed to it."""

    @property
    def pending(self) -> int:
        """Handshakes it has not answered yet."""

    @property
    def state(self) -> str:
        """`up`, `broken`, `ramping`, or `removed`: not in the settings any more, with sockets left."""

    @property
    def failures(self) -> int:
        """Handshakes it failed to answer, so far."""


@dataclass(frozen=True, slots=True)
class ChildStatus:
    """One process of a gateway that has several.

    Attributes:
        number: from 1, the same for whoever takes its place.
        pid: None while it is down.
        state: only `ready` takes arrivals; `blocked` has told nothing for too long.
        restarts: how often another took its place, so far.
    """

    number: int
    pid: int | None
    state: ChildState
    restarts: int


@dataclass(frozen=True, slots=True)
class Status:
    """All that is told about a gateway, as of one moment.

    Attributes:
        gates: counts by route name.
        workers: the pool, in the order of the settings.
        started_at: when the process started, Unix seconds.
        version: of herdgate.
        children: the processes that serve; none where this one serves itself.
        drain: how far its drain is; None: there is none.
        published_at: when the main loop took the counts, seconds of `time.monotonic`.
    """

    gates: Mapping[str, GateSnapshot]
    workers: Sequence[WorkerStatus]
    started_at: float
    version: str
    children: Sequence[ChildStatus] = ()
    drain: DrainStatus | None = None
    published_at: float = field(default_factory=time.monotonic)

    @property
    def rooms(self) -> Mapping[str, float]:
        """Sockets that each worker may still get of its whole fleet; see `herdgate.FleetSnapshot`."""
        return next((gate.fleet.rooms for gate in self.gates.values() if gate.fleet), {})

    @property
    def age_s(self) -> float:
        """Seconds since the main loop took the counts."""
        return time.monotonic() - self.published_at


class View(Protocol):
    """The running gateway, for the admin thread. Everything in it is called from that thread, and must not block it."""

    def status(self) -> Status:
        """The latest one the main loop has published."""

    def is_ready(self) -> bool:
        """True while new arrivals should be sent here: from the open listeners to the start of a drain."""

    async def set_rate(self, rate: float | None) -> None:
        """Change the rate, admissions per second; None: no limit.

        Awaited in the admin thread's loop, so the change has to be handed over to the main loop: see
        `herdgate_gateway.admin.handover`. Cancelled while the main loop has not taken it, it is never made.

        Raises:
            ConfigurationError: negative, NaN, infinite or not a number.
        """

    async def set_fraction(self, fraction: float) -> None:
        """Change the share of client keys let past; as `set_rate`.

        Raises:
            ConfigurationError: not a number from 0 to 1.
        """

    async def drain(self, within_s: float | None) -> None:
        """Begin a drain; as `set_rate`. Harmless to repeat.

        Args:
            within_s: seconds it may take. None: those of the settings.
        """


def reason_not_ready(view: View, stale_after_s: float) -> str | None:
    """Why no arrivals should be sent here now; None: they should.

    Args:
        stale_after_s: age of the status from which the main loop counts as blocked, seconds.
    """
    status = view.status()
    if status.age_s > stale_after_s:
        return f"main loop blocked: it has published nothing for {status.age_s:.1f} s"
    if view.is_ready():
        return None
    if status.drain is not None:
        return "draining: waits for its turn" if status.drain.state == "waiting" else status.drain.state
    if status.children and not any(child.state == "ready" for child in status.children):
        return f"no child is ready: {children_not_ready(status)}"
    if any(gate.state == "draining" for gate in status.gates.values()):
        return "draining"
    return "starting or stopping"


def children_not_ready(status: Status) -> str:
    """Those of several processes that take no arrivals, and why; empty: there are none."""
    return ", ".join(f"child {child.number} is {child.state}" for child in status.children if child.state != "ready")
