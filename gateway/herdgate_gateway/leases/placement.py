"""Where shards ought to be: rendezvous hashing with bounded load, computed by everyone alike. Pure.

Each worker has a score for each shard, by its name and its capacity, and the best one ranks first (Thaler and
Ravishankar, 1998; weights as in Schindelhauer and Schomaker, 2005), unless it has its part of all shards and a quarter
on top: then the next one does. A worker that comes or goes moves hardly more shards than its own.

Rank means who comes first, not who may: any worker may own any shard.
"""

from collections.abc import Mapping
from hashlib import blake2b
from math import ceil, log

from herdgate_gateway.leases.rows import SHARDS

__all__ = ["Placement"]

_SLACK = 1.25
_MASK = (1 << 64) - 1


class Placement:
    """The ranks of these workers for every shard.

    Args:
        capacities: of workers, by name; a capacity below 1 counts as 1.
        shards: how many there are.
    """

    def __init__(self, capacities: Mapping[str, int], shards: int = SHARDS) -> None:
        weights = {worker: max(1, capacities[worker]) for worker in sorted(capacities)}
        total = sum(weights.values())
        room = {worker: ceil(_SLACK * shards * weight / total) for worker, weight in weights.items()}
        seeds = {worker: _seed(worker) for worker in weights}
        self._ranks: list[list[str]] = []
        for shard in range(shards):
            scored = sorted(weights, key=lambda worker: -_score(seeds[worker], shard, weights[worker]))
            first = next((worker for worker in scored if room[worker]), None)
            if first is not None:
                room[first] -= 1
                scored.remove(first)
                scored.insert(0, first)
            self._ranks.append(scored)

    def ranked(self, shard: int) -> list[str]:
        """All workers, the one that ranks first for this shard first; empty if there are none."""
        return self._ranks[shard]

    def first_for(self, worker: str) -> list[int]:
        """The shards that this worker ranks first for."""
        return self.at_rank(worker, 0)

    def at_rank(self, worker: str, rank: int) -> list[int]:
        """The shards that this worker has this rank for, from 0."""
        return [shard for shard, ranks in enumerate(self._ranks) if rank < len(ranks) and ranks[rank] == worker]


def _seed(worker: str) -> int:
    return int.from_bytes(blake2b(worker.encode("utf-8", "surrogateescape"), digest_size=8).digest())


def _score(seed: int, shard: int, weight: int) -> float:
    mixed = (seed ^ (shard * 0x9E3779B97F4A7C15)) & _MASK  # the finalizer of SplitMix64 (Steele, Lea, Flood 2014)
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    mixed ^= mixed >> 31
    return -weight / log((mixed + 1) / (_MASK + 2))
