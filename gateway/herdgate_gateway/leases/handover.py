"""Giving shards away: only their owner does, and never halfway.

Frozen first, a shard is acted on by nobody until its successor knows of it. If nobody knows what came of the write, it
is repeated, the very same, until the table says done or lost. A read would not do: the write may still be on its way.
"""

from collections.abc import Callable, Mapping

from herdgate_gateway.leases.acts import hand_over
from herdgate_gateway.leases.at_once import for_each
from herdgate_gateway.leases.certainty import until_known
from herdgate_gateway.leases.holdings import Holdings
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.rows import WorkerRow

__all__ = ["Tell", "give_away"]

_AT_ONCE = 4  # more would only wait for each other, and nobody serves a shard while its write waits

Tell = Callable[[WorkerRow, int], None]
"""Called with a successor and a shard that is its own now."""


async def give_away(life: Life, holdings: Holdings, successors: Mapping[int, WorkerRow], tell: Tell) -> None:
    """Hand these shards over; those that are not held are left out.

    Args:
        successors: by shard.
        tell: where the news is carried to the successor.
    """

    async def give(shard: int) -> None:
        epoch = holdings.freeze(shard) if life.may_act() else None
        if epoch is None:
            return
        write = hand_over(life.fleet, life.row.inc, shard, epoch, successors[shard])
        await until_known(life.table, life.clock, write)
        holdings.gave(shard, epoch)  # lost: it was done before, or somebody has taken it
        tell(successors[shard], shard)

    await for_each(successors, give, most=_AT_ONCE)
