"""Who owns which shard, as far as a gateway knows. Pure.

    unknown -> owned -> owned with a higher epoch ...
                     -> its owner is dead: nobody's, until a higher epoch is heard of

Rules: of a shard only a higher epoch than the highest one known is news, whatever is read or heard later; who is dead
stays dead, as a life never comes back.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from herdgate_gateway.leases.rows import ShardRow

__all__ = ["Owner", "Owners"]

MOST_DEAD = 4_096
"""Lives remembered to be over; more end in no time that a read is late by."""


class Owner(NamedTuple):
    """Who a shard's sockets go to.

    Attributes:
        worker: its name.
        inc: its life.
        url: what to dial.
        epoch: of the ownership.
    """

    worker: str
    inc: str
    url: str
    epoch: int

    @classmethod
    def of(cls, row: ShardRow) -> "Owner":
        """The one that a row tells."""
        return cls(row.owner, row.inc, row.addr, row.epoch)


class Owners:
    """Of one fleet.

    Args:
        overtaken: told of a shard whose sockets are not its owner's any more, and of the epoch that is.
    """

    def __init__(self, overtaken: Callable[[int, int], None]) -> None:
        self._overtaken = overtaken
        self._known: dict[int, Owner] = {}
        self._dead: OrderedDict[str, None] = OrderedDict()

    def __iter__(self) -> Iterator[Owner]:
        """The owners of all shards that have one, one for each."""
        return (owner for owner in self._known.values() if owner.inc not in self._dead)

    def find(self, shard: int) -> Owner | None:
        """Who owns it; None: nobody who lives, as far as is known."""
        owner = self._known.get(shard)
        return None if owner is None or owner.inc in self._dead else owner

    def learn(self, shard: int, owner: Owner) -> bool:
        """Somebody owns it; False: that is no news."""
        known = self._known.get(shard)
        if known is not None and owner.epoch <= known.epoch:
            return False
        self._known[shard] = owner
        if known is not None:
            self._overtaken(shard, owner.epoch)
        return True

    def bury(self, inc: str) -> None:
        """A life is over."""
        self._dead[inc] = None
        self._dead.move_to_end(inc)
        if len(self._dead) > MOST_DEAD:
            self._dead.popitem(last=False)

    def orphans(self, shards: Iterable[int]) -> list[int]:
        """Those of these shards that nobody owns."""
        return [shard for shard in shards if self.find(shard) is None]
