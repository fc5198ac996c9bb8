"""The rows of the lease table, and their keys. Pure.

    worker      <fleet>#W#<0..7>   <worker>   one per name; who lives behind it, and its beats
    shard       <fleet>#S#<0123>   @          who owns it, since which epoch; never deleted
    connection  <fleet>#S#<0123>   C#<id>     what shall run in it, and how far it has come

What must run in a shard is one query. Workers are spread over eight partitions, so that they are found without a scan.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

__all__ = [
    "SHARDS",
    "ConnectionRow",
    "Item",
    "Key",
    "ShardRow",
    "Want",
    "WorkerRow",
    "WorkerState",
    "connection_key",
    "shard_key",
    "shard_of",
    "worker_key",
    "worker_partitions",
]

SHARDS = 1_024
"""Shards of a fleet; it cannot be changed while connections exist."""

_WORKER_PARTITIONS = 8

Item = Mapping[str, Any]
"""Attributes by name: texts, whole numbers, truth values, and maps and lists of them."""

WorkerState = Literal["UP", "DRAINING", "DEAD"]

Want = Literal["STARTED", "STOPPED"]
"""What shall become of a connection."""


class Key(NamedTuple):
    """Partition and sort key of a row."""

    pk: str
    sk: str


def shard_of(connection_id: str) -> int:
    """The shard of a connection: the same everywhere, for ever."""
    return int.from_bytes(_hash(connection_id)) % SHARDS


def worker_key(fleet: str, worker: str) -> Key:
    """Of the row of a worker's name."""
    return Key(f"{fleet}#W#{int.from_bytes(_hash(worker)) % _WORKER_PARTITIONS}", worker)


def worker_partitions(fleet: str) -> Iterator[str]:
    """Of all workers of a fleet."""
    return (f"{fleet}#W#{number}" for number in range(_WORKER_PARTITIONS))


def shard_key(fleet: str, shard: int) -> Key:
    """Of a shard's row."""
    return Key(f"{fleet}#S#{shard:04d}", "@")


def connection_key(fleet: str, connection_id: str) -> Key:
    """Of a connection's row."""
    return Key(shard_key(fleet, shard_of(connection_id)).pk, f"C#{connection_id}")


def _hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest()


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker as the table knows it.

    Attributes:
        inc: its present life.
        prev: the life that this one replaced, which is dead.
        hb: beats of this life.
        lease_ms: how long its right lasts, whoever reads this.
        addr: where gateways connect to.
        capacity: sockets it takes; what others place by.
        load: sockets it has.
    """

    worker: str
    inc: str
    prev: str | None
    st: WorkerState
    hb: int
    lease_ms: int
    addr: str
    capacity: int
    load: int

    @classmethod
    def of(cls, item: Item) -> "WorkerRow":
        """The row in an item; a tombstone has nothing but its inc."""
        return cls(
            item["sk"],
            item["inc"],
            item.get("prev"),
            item["st"],
            item.get("hb", 0),
            item.get("lease_ms", 0),
            item.get("addr", ""),
            item.get("capacity", 0),
            item.get("load", 0),
        )


@dataclass(frozen=True, slots=True)
class ShardRow:
    """A shard as the table knows it.

    Attributes:
        owner: name of the worker.
        inc: the life of it that owns the shard.
        addr: where gateways connect to.
        epoch: generation << 40 | counter; grows with every owner.
    """

    shard: int
    owner: str
    inc: str
    addr: str
    epoch: int

    @classmethod
    def of(cls, item: Item) -> "ShardRow":
        """The row in an item."""
        return cls(int(item["pk"].rpartition("#")[2]), item["owner"], item["inc"], item["addr"], item["epoch"])


@dataclass(frozen=True, slots=True)
class ConnectionRow:
    """A connection as the table knows it.

    Attributes:
        want: what shall become of it.
        epoch: of the owner that claimed it last; None: nobody has.
        last_seq: how far it has come; None: nowhere yet.
        attrs: whatever its creator gave.
    """

    id: str
    want: Want
    epoch: int | None
    last_seq: int | None
    attrs: Mapping[str, Any]

    @classmethod
    def of(cls, item: Item) -> "ConnectionRow":
        """The row in an item."""
        name = item["sk"].removeprefix("C#")
        return cls(name, item["want"], item.get("epoch"), item.get("last_seq"), item.get("attrs", {}))
