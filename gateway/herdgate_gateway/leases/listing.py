"""Who is there and who owns what, as tables for people and as JSON. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from herdgate_gateway.leases.rows import SHARDS, ShardRow, WorkerRow

__all__ = ["Ownership", "columns", "owners_text", "ownership", "shown_shards", "workers_text"]

_MOST_RUNS = 10
_WORKER_HEAD = ("worker", "state", "inc", "beats", "address", "capacity", "load")


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who owns what.

    Attributes:
        owners: shards of each worker that lives.
        orphans: rows of shards whose owner does not live any more.
        unowned: how many shards nobody has owned yet.
    """

    owners: Mapping[str, Sequence[int]]
    orphans: Sequence[ShardRow]
    unowned: int

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"owners": self.owners, "orphans": [asdict(row) for row in self.orphans], "unowned": self.unowned}


def ownership(shards: Collection[ShardRow], workers: Iterable[WorkerRow]) -> Ownership:
    """Who owns what.

    Args:
        shards: rows of all that there are.
        workers: read strongly, after the shards; else a worker that has just come seems dead.
    """
    living = {row.inc: row.worker for row in workers if row.st != "DEAD"}
    owners: dict[str, list[int]] = {name: [] for name in sorted(living.values())}
    orphans = []
    for row in sorted(shards, key=lambda row: row.shard):
        if row.inc in living:
            owners[living[row.inc]].append(row.shard)
        else:
            orphans.append(row)
    return Ownership(owners, orphans, SHARDS - len(shards))


def workers_text(workers: Sequence[WorkerRow]) -> str:
    """A line for each."""
    if not workers:
        return "no workers"
    return columns([_WORKER_HEAD, *map(_worker, workers)])


def owners_text(found: Ownership) -> str:
    """A line for each owner, then what nobody runs."""
    rows = [("worker", "count", "shards")]
    rows += [(name, str(len(shards)), shown_shards(shards)) for name, shards in found.owners.items()]
    if found.orphans:
        rows.append(("(dead)", str(len(found.orphans)), shown_shards([row.shard for row in found.orphans])))
    if found.unowned:
        rows.append(("(never owned)", str(found.unowned), ""))
    return columns(rows)


def shown_shards(shards: Iterable[int]) -> str:
    """Ascending numbers in short: 1-3, 7, and ... instead of what is more than a line."""
    runs: list[list[int]] = []
    for shard in shards:
        if runs and runs[-1][-1] == shard - 1:
            runs[-1][1:] = [shard]
        else:
            runs.append([shard])
    more = ["..."] if len(runs) > _MOST_RUNS else []
    return ", ".join(["-".join(map(str, run)) for run in runs[:_MOST_RUNS]] + more)


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells, one below the other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _worker(row: WorkerRow) -> Sequence[str]:
    return (row.worker, row.st, row.inc, f"{row.hb:,}", row.addr or "-", f"{row.capacity:,}", f"{row.load:,}")
