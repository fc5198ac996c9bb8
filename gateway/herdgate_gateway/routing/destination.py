"""Where one arrival goes in a fleet with leases, and what its worker is told. Pure."""

from typing import NamedTuple

__all__ = ["Destination"]


class Destination(NamedTuple):
    """Where one arrival goes.

    Attributes:
        shard: of its connection.
        url: of the owner.
        epoch: of the ownership.
    """

    shard: int
    url: str
    epoch: int

    @property
    def stamp(self) -> list[tuple[str, str]]:
        """What the worker is told."""
        return [("herdgate-shard", str(self.shard)), ("herdgate-epoch", str(self.epoch))]
