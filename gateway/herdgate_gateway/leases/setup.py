"""What an owner of shards is made with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from herdgate_gateway.leases.clocks import Clock
from herdgate_gateway.leases.handover import Tell
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.rows import SHARDS, WorkerRow
from herdgate_gateway.leases.table import LeaseTable

__all__ = ["Beating", "Setup"]


class Beating(Protocol):
    """As `beat.Beats`."""

    @property
    def trouble_at(self) -> float | None:
        """When one failed or was late last."""
        ...

    async def run(self, renewed: Callable[[], None], lost: Callable[[], None]) -> None:
        """Beat until this life is over, or cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker is to the others, and what it has to work with.

    Attributes:
        row: name, address, capacity and lease; the rest of it is not looked at.
        beats: makes the beats of a life.
        new_inc: never the same twice, anywhere.
        random: uniform numbers in [0, 1).
        tell: where news is carried to another worker.
        poll_s: seconds between two looks at the others.
        shards: of the fleet.
        generation: see `acts.epoch_after`.
    """

    table: LeaseTable
    clock: Clock
    fleet: str
    row: WorkerRow
    beats: Callable[[Life], Beating]
    new_inc: Callable[[], str]
    random: Callable[[], float]
    tell: Tell
    poll_s: float = 0.5
    shards: int = SHARDS
    generation: int = 0
