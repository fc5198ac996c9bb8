"""One life of one worker: what all its parts share."""

from dataclasses import dataclass

from herdgate_gateway.leases.clocks import Clock
from herdgate_gateway.leases.rights import Right
from herdgate_gateway.leases.rows import WorkerRow
from herdgate_gateway.leases.table import LeaseTable

__all__ = ["Life"]


@dataclass(frozen=True, slots=True)
class Life:
    """Begun by `registration.begin`, renewed by `beat.Beats`.

    Attributes:
        row: as it was registered.
    """

    table: LeaseTable
    clock: Clock
    fleet: str
    row: WorkerRow
    right: Right

    def may_act(self) -> bool:
        """True while the right runs. To be asked right before a write is sent, and again after its answer."""
        return self.right.runs(self.clock.now())

    def may_gain(self) -> bool:
        """True while one may act, and has the time to let go of what comes to it now."""
        now = self.clock.now()
        return self.right.runs(now) and self.right.left_s(now) > 0
