"""What a lease table costs, by what DynamoDB bills: units of writes and reads. Pure.

A write is a unit for each 1 KB of the row, also if its condition fails. A read is a unit for each 4 KB, half a unit if
it may be late. A change of a row's key in an index is two more writes: one taken out, one put in.
"""

from dataclasses import dataclass
from math import ceil

from herdgate_gateway.leases.rows import SHARDS

__all__ = ["INDEX_FULL_PER_S", "Fleet", "Load", "Prices", "full_at", "leases", "per_connection", "with_checkpoints"]

INDEX_FULL_PER_S = 1_000
"""Writes per second that one partition takes."""

_MONTH_S = 730 * 3_600
_MILLION = 1_000_000
_WORKER_PARTITIONS = 8
_SWEEP_S = 60.0
_SWEPT = 2  # each shard, by whom it ranks first for, who mostly owns it, and second
_LATE_READ = 0.5
_RENEWALS = 3  # in one lease
_INDEX_CHANGE = 2


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars for a million units."""

    writes: float
    reads: float


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is planned for.

    Attributes:
        connections: held at the same time.
        per_worker: connections that one worker takes.
        beat_s: seconds between beats, and between looks at the others.
    """

    connections: int
    per_worker: int = 4_000
    beat_s: float = 1.0

    @property
    def workers(self) -> int:
        """Workers that it takes, at least one."""
        return max(1, ceil(self.connections / self.per_worker))


@dataclass(frozen=True, slots=True)
class Load:
    """Units per second, in the long run."""

    writes_per_s: float
    reads_per_s: float

    def monthly(self, prices: Prices) -> float:
        """US dollars in a month of 730 hours; storage and transfer are not in it."""
        per_s = self.writes_per_s * prices.writes + self.reads_per_s * prices.reads
        return per_s * _MONTH_S / _MILLION


def leases(fleet: Fleet) -> Load:
    """Of this design: each worker beats, looks at the others, and sweeps shards.

    Rows of workers are taken to fit into 4 KB for each of their partitions, as they do up to some 150 workers.
    """
    looks = fleet.workers * _WORKER_PARTITIONS * _LATE_READ / fleet.beat_s
    sweeps = min(fleet.workers, _SWEPT) * SHARDS / _SWEEP_S
    return Load(fleet.workers / fleet.beat_s, looks + sweeps)


def with_checkpoints(fleet: Fleet, checkpoints_per_s: float) -> Load:
    """Of this design, and so many checkpoints of each connection per second."""
    plain = leases(fleet)
    return Load(plain.writes_per_s + fleet.connections * checkpoints_per_s, plain.reads_per_s)


def per_connection(fleet: Fleet, lease_s: float) -> Load:
    """Of a lease for each connection, renewed thrice in its time, with an index on its expiry.

    Reads of the index are not counted.
    """
    return Load(fleet.connections * _RENEWALS / lease_s * (1 + _INDEX_CHANGE), 0.0)


def full_at(lease_s: float) -> int:
    """Connections at which the one partition of that index that all renewals go to is full."""
    return int(INDEX_FULL_PER_S / (_RENEWALS / lease_s * _INDEX_CHANGE))
