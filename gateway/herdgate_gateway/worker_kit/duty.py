"""What a worker does with the shards it owns: serves sockets of an ASGI app, or runs handlers that dial out.

    start -> run, beside the leases -> gained, lost, wants_changed: as it comes
          -> release, then lost: each shard, when the worker stops in good order
          -> run is cancelled -> aclose

All of it happens in one event loop, but `load`, which is asked on the thread of the beats. Made by `process` as
`serving.Serving(parts, ...)` or `dialling.Dialling(parts, "module:handler")`, before there is a life; what cannot be
imported is a `HerdgateError` then.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from herdgate_gateway.leases.clocks import Clock
from herdgate_gateway.leases.effects import Effects
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.rows import ShardRow
from herdgate_gateway.leases.table import LeaseTable

__all__ = ["Duty", "Owning", "Parts"]


class Owning(Protocol):
    """What a duty may ask of the leases: as `leases.owner.ShardOwner`."""

    def epoch(self, shard: int) -> int | None:
        """Of a shard that may be acted on at this moment; None: it may not."""
        ...

    @property
    def effects(self) -> Effects | None:
        """Claims and checkpoints of the present life; None between two."""
        ...

    @property
    def life(self) -> Life | None:
        """The present one; None between two."""
        ...

    async def adopt(self, shard: int) -> ShardRow | None:
        """Look who owns a shard, strongly, and hold it from now on if that is me.

        Returns:
            Its row; None: nobody has owned it yet, or there is no life that may look.

        Raises:
            TableError: it could not be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What a duty works with.

    Attributes:
        table: a client of the loop that acts; closed by `process`, after the duty.
        fleet: its name.
        worker: name of this one.
    """

    owner: Owning
    table: LeaseTable
    clock: Clock
    fleet: str
    worker: str


class Duty(Protocol):
    """See above. `gained`, `lost` and `wants_changed` return at once and raise nothing."""

    def gained(self, shard: int, epoch: int) -> None:
        """This shard may be acted on, with this epoch, from now on."""
        ...

    def lost(self, shard: int, epoch: int) -> None:
        """It may not any more: what goes on in it has to end at once."""
        ...

    def wants_changed(self, shards: Iterable[int]) -> None:
        """Somebody says that rows of connections in these shards have changed; they may be anybody's."""
        ...

    def weights(self) -> Mapping[int, int]:
        """Sockets or handlers by shard; shards without any may be left out."""
        ...

    def load(self) -> int:
        """All of them. Called on another thread: nothing but a number is read."""
        ...

    async def start(self) -> None:
        """Be ready before any shard can come.

        Raises:
            HerdgateError: it cannot be, in one line.
        """
        ...

    async def release(self, shard: int) -> None:
        """A shard is about to be given away, in good order: end what has to write before it is frozen.

        `lost` follows. It is cancelled where it takes too long.
        """
        ...

    async def run(self) -> None:
        """Until cancelled. If it returns by itself, the worker stops."""
        ...

    async def aclose(self) -> None:
        """Let go of everything; also after a `start` that failed. `run` has ended."""
        ...
