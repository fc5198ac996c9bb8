"""Which shards to look at for what is wanted, and what has to change then. Pure.

Rules:
- a shard that was gained, or that there is news of, is looked at at once, and every one a minute after the last time;
- only a read that began after a connection was claimed says anything about what runs since: an older one is read again;
- what a claim's own answer says is newest, so whoever claims it looks at that.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import inf

from herdgate_gateway.connections.limits import canonical
from herdgate_gateway.leases.rows import ConnectionRow

__all__ = ["Agenda", "Changes", "Known", "changes"]

EVERY_S = 60.0
"""Seconds between two looks at a shard, at most."""


class Agenda:
    """When to look at which shard.

    Args:
        random: uniform numbers in [0, 1).
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._due: dict[int, float] = {}

    def look(self, shard: int, at: float) -> None:
        """Look at it then, or sooner if that was meant already."""
        self._due[shard] = min(at, self._due.get(shard, inf))

    def looked(self, shard: int, now: float) -> None:
        """It was looked at; shards drift apart, however they came."""
        self.look(shard, now + EVERY_S * (1 + self._random()) / 2)

    def drop(self, shard: int) -> None:
        """It is not ours any more."""
        self._due.pop(shard, None)

    def take_due(self, now: float, most: int) -> list[int]:
        """So many of those that are due, the longest due first; they are off the agenda."""
        due = sorted((at, shard) for shard, at in self._due.items() if at <= now)[:most]
        for _, shard in due:
            del self._due[shard]
        return [shard for _, shard in due]

    def wait_s(self, now: float) -> float:
        """Seconds until one is due; infinite: none is meant."""
        return max(0.0, min(self._due.values(), default=inf) - now)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a connection that runs, or is about to.

    Attributes:
        at: when its claim was answered last; None: it was not yet.
        attrs: that it runs with, canonical; None: it does not yet.
    """

    at: float | None = None
    attrs: str | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """What has to change, by id.

    Attributes:
        is_unclear: True if the read is older than what is known: look again.
    """

    start: Collection[str]
    end: Collection[str]
    restart: Collection[str]
    is_unclear: bool


def changes(rows: Collection[ConnectionRow], running: Mapping[str, Known], began: float) -> Changes:
    """What has to change.

    Args:
        rows: all that there are in a shard.
        running: in it.
        began: when they were asked for.
    """
    wanted = {row.id: canonical(row.attrs) for row in rows if row.want == "STARTED"}
    ended = {name for name in running if name not in wanted}
    changed = {name for name, known in running.items() if known.attrs not in (None, wanted.get(name))} - ended
    sure = {name for name, known in running.items() if known.at is not None and known.at <= began}
    start = [name for name in wanted if name not in running]
    return Changes(start, ended & sure, changed & sure, not (ended | changed) <= sure)
