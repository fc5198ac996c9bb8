"""The writes of the lease protocol, all there are: each with the condition that makes it safe. Pure.

Conditions are of inc and epoch, which name one life and one ownership, so a write that comes late, twice, or after its
sender is dead changes nothing that is somebody else's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from herdgate_gateway.leases.conditions import (
    ABSENT,
    PRESENT,
    All,
    AtLeast,
    AtMost,
    Below,
    Condition,
    Either,
    Is,
    IsNot,
    Missing,
)
from herdgate_gateway.leases.rows import Key, ShardRow, WorkerRow, WorkerState, connection_key, shard_key, worker_key

__all__ = [
    "LAST_GENERATION",
    "Write",
    "beat",
    "checkpoint",
    "claim",
    "epoch_after",
    "fence",
    "fence_child",
    "hand_over",
    "register",
    "set_state",
    "take",
    "tombstone",
    "want_started",
    "want_stopped",
]

_GENERATION_BITS = 40

LAST_GENERATION = 2**13 - 1
"""Epochs of it are whole numbers in JavaScript and in doubles too, 2^53 at most."""

_ALIVE = IsNot("st", "DEAD")
_ANYHOW = Either((PRESENT, ABSENT))


@dataclass(frozen=True, slots=True)
class Write:
    """One conditional update of one row, which it may create.

    Attributes:
        sets: attributes that get these values; None: the attribute is taken out.
        adds: numbers that grow by so much, from 0 if they are missing.
        condition: of the row as it is before.
    """

    key: Key
    condition: Condition
    sets: Mapping[str, Any] = field(default_factory=dict)
    adds: Mapping[str, int] = field(default_factory=dict)


def register(fleet: str, mine: WorkerRow, seen: WorkerRow | None) -> Write:
    """Begin a life, over the one that was seen dead. It gives no right: the first beat does."""
    sets = {
        "inc": mine.inc,
        "prev": seen.inc if seen else None,
        "st": mine.st,
        "hb": 0,
        "lease_ms": mine.lease_ms,
        "addr": mine.addr,
        "capacity": mine.capacity,
        "load": mine.load,
    }
    condition = ABSENT if seen is None else All((Is("inc", seen.inc), Is("st", "DEAD")))
    return Write(worker_key(fleet, mine.worker), condition, sets)


def beat(fleet: str, worker: str, inc: str, load: int, known: int = 0) -> Write:
    """Renew one's right, and say how many sockets there are.

    Args:
        known: beats of this life that were seen to be carried out. A row that has fewer is another one: the old one has
            vanished, and a register of before came late.
    """
    condition = All((Is("inc", inc), _ALIVE, AtLeast("hb", known)))
    return Write(worker_key(fleet, worker), condition, {"load": load}, {"hb": 1})


def set_state(fleet: str, worker: str, inc: str, state: WorkerState) -> Write:
    """Say of oneself that one is draining, or dead: who is dead acts no more."""
    return Write(worker_key(fleet, worker), All((Is("inc", inc), _ALIVE)), {"st": state})


def fence(fleet: str, seen: WorkerRow) -> Write:
    """Declare dead who has not beaten since `seen`."""
    condition = All((Is("inc", seen.inc), Is("hb", seen.hb), _ALIVE))
    return Write(worker_key(fleet, seen.worker), condition, {"st": "DEAD"})


def fence_child(fleet: str, worker: str, inc: str) -> Write:
    """Declare dead one's own child, whose end was seen."""
    return set_state(fleet, worker, inc, "DEAD")


def tombstone(fleet: str, worker: str, inc: str) -> Write:
    """Declare dead an inc that owns something and whose row has vanished."""
    return Write(worker_key(fleet, worker), ABSENT, {"inc": inc, "st": "DEAD"})


def epoch_after(epoch: int, generation: int = 0) -> int:
    """The epoch of the next owner: generation << 40 | counter, always higher.

    Args:
        epoch: of the owner before; 0: there was none.
        generation: raised by the operator after the table was restored from a backup; `LAST_GENERATION` at most.
    """
    return max(epoch, generation << _GENERATION_BITS) + 1


def take(fleet: str, mine: WorkerRow, shard: int, seen: ShardRow | None, generation: int = 0) -> Write:
    """Own a shard nobody has owned yet, or whose owner was seen dead."""
    if seen is None:
        return Write(shard_key(fleet, shard), ABSENT, _ownership(mine, epoch_after(0, generation)))
    condition = All((Is("inc", seen.inc), Is("epoch", seen.epoch)))
    return Write(shard_key(fleet, shard), condition, _ownership(mine, epoch_after(seen.epoch, generation)))


def hand_over(fleet: str, inc: str, shard: int, epoch: int, to: WorkerRow) -> Write:
    """Give a shard away, frozen before."""
    condition = All((Is("inc", inc), Is("epoch", epoch)))
    return Write(shard_key(fleet, shard), condition, _ownership(to, epoch_after(epoch)))


def _ownership(owner: WorkerRow, epoch: int) -> dict[str, Any]:
    return {"owner": owner.worker, "inc": owner.inc, "addr": owner.addr, "epoch": epoch}


def claim(fleet: str, connection_id: str, epoch: int) -> Write:
    """Serve a connection from now on; what comes back holds its `last_seq`."""
    condition = All((PRESENT, Either((Missing("epoch"), AtMost("epoch", epoch)))))
    return Write(connection_key(fleet, connection_id), condition, {"epoch": epoch})


def checkpoint(fleet: str, connection_id: str, epoch: int, last_seq: int) -> Write:
    """Say how far a connection that one has claimed has come."""
    newer = Either((Missing("last_seq"), Below("last_seq", last_seq)))
    condition = All((PRESENT, AtMost("epoch", epoch), newer))
    return Write(connection_key(fleet, connection_id), condition, {"last_seq": last_seq})


def want_started(fleet: str, connection_id: str, attrs: Mapping[str, Any] | None) -> Write:
    """Have a connection run, in whoever owns its shard; it is made if there is none.

    Args:
        attrs: for who serves it; None: those that are there stay.
    """
    sets: dict[str, Any] = {"want": "STARTED", "ttl": None}
    return Write(connection_key(fleet, connection_id), _ANYHOW, sets if attrs is None else {**sets, "attrs": attrs})


def want_stopped(fleet: str, connection_id: str, ttl: int) -> Write:
    """Have a connection not run any more.

    Its row stays, as its epoch does: on a new row without one a stale owner's late claim would be accepted.

    Args:
        ttl: Unix time, seconds, from which on the row is garbage.
    """
    return Write(connection_key(fleet, connection_id), PRESENT, {"want": "STOPPED", "ttl": ttl})
