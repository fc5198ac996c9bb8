"""Sockets that are open, by shard, so that those of a shard that has moved can be called back. Pure."""

from collections.abc import Callable
from functools import partial

__all__ = ["ShardSockets"]

Recall = Callable[[], None]


class ShardSockets:
    """Of one gateway."""

    def __init__(self) -> None:
        self._open: dict[int, dict[Recall, int]] = {}

    def add(self, shard: int, epoch: int, recall: Recall) -> Callable[[], None]:
        """One more, accepted by the owner with this epoch.

        Args:
            recall: calls it back; equal to no other one's.

        Returns:
            What is to be called when it has ended.
        """
        self._open.setdefault(shard, {})[recall] = epoch
        return partial(self._forget, shard, recall)

    def recall(self, shard: int, epoch: int) -> None:
        """Its owner has this epoch now: call back who is with an earlier one."""
        for recall, accepted in tuple(self._open.get(shard, {}).items()):
            if accepted < epoch:
                recall()

    def _forget(self, shard: int, recall: Recall) -> None:
        sockets = self._open.get(shard, {})
        sockets.pop(recall, None)
        if not sockets:
            self._open.pop(shard, None)
