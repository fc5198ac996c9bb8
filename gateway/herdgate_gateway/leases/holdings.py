"""The shards that one life serves. Pure.

    taken or found to be mine -> held -> frozen -> given away
                                      -> dropped: the right has run out, or somebody else owns it

Rules:
- what was given away with an epoch is never held again with that one or a lower one, whatever a read says;
- what is frozen is not acted on, and never thaws: whether it was given away is not for a read to tell;
- whoever is told of a gain is told of the loss.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["Holdings"]

Told = Callable[[int, int], None]
"""Called with a shard and its epoch."""


@dataclass(slots=True)
class _Held:
    epoch: int
    since: float
    frozen: bool = False


class Holdings:
    """What is held.

    Args:
        gained: told when a shard may be acted on.
        lost: told when it may not any more.
    """

    def __init__(self, gained: Told, lost: Told) -> None:
        self._gained, self._lost = gained, lost
        self._held: dict[int, _Held] = {}
        self._given: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[int]:
        """The shards held, frozen ones included."""
        return iter(tuple(self._held))

    def epoch(self, shard: int) -> int | None:
        """Of a shard that may be acted on; None: it may not."""
        held = self._held.get(shard)
        return None if held is None or held.frozen else held.epoch

    def since(self, shard: int) -> float | None:
        """When it came; None: it is not here, or on its way out."""
        held = self._held.get(shard)
        return None if held is None or held.frozen else held.since

    def hold(self, shard: int, epoch: int, now: float) -> None:
        """A strong read, or a write that was done, says that it is mine. Nothing changes for one that is known."""
        held = self._held.get(shard)
        if epoch <= self._given.get(shard, 0) or (held is not None and held.epoch >= epoch):
            return
        self._end(shard)
        self._held[shard] = _Held(epoch, now)
        self._gained(shard, epoch)

    def freeze(self, shard: int) -> int | None:
        """Act on it no more, as it is about to be given away: its epoch; None if it may not be acted on anyway."""
        epoch = self.epoch(shard)
        if epoch is not None:
            self._held[shard].frozen = True
            self._given[shard] = epoch
            self._lost(shard, epoch)
        return epoch

    def gave(self, shard: int, epoch: int) -> None:
        """It was given away, or is somebody else's already: what was held with this epoch is over."""
        self._given[shard] = max(epoch, self._given.get(shard, 0))
        held = self._held.get(shard)
        if held is not None and held.epoch <= epoch:
            self._end(shard)

    def lapse(self) -> None:
        """The right has run out: drop all but what is frozen, which is still on its way to somebody."""
        for shard in self:
            if not self._held[shard].frozen:
                self._end(shard)

    def _end(self, shard: int) -> None:
        held = self._held.pop(shard, None)
        if held is not None and not held.frozen:
            self._lost(shard, held.epoch)
