"""Who owns how many shards now, by what owners say of themselves. Pure.

Rules: of a shard only a higher epoch than the highest one known is news; what a worker that was killed owned is
nobody's until another one says that it owns it. Moments are monotonic seconds, as the news was heard.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from herdgate_loadtest.servers.lease_table import SHARDS

__all__ = ["Ledger"]

_UNEVEN = 1.25  # chance makes less of a difference


class _Owned(NamedTuple):
    worker: str | None
    epoch: int


class Ledger:
    """Of one fleet.

    Args:
        owners: numbers of the shards of each worker at the beginning.
        now: when that was read.

    Attributes:
        whole_at: when the last shard of nobody found an owner; None while there are any.
        moved_at: when a shard found another owner last, or the beginning.
    """

    def __init__(self, owners: Mapping[str, Iterable[int]], now: float) -> None:
        self._owned = dict.fromkeys(range(SHARDS), _Owned(None, -1))
        self._owned |= {shard: _Owned(worker, 0) for worker, shards in owners.items() for shard in shards}
        self.whole_at: float | None = None if self.unowned else now
        self.moved_at = now

    def hear(self, news: str, now: float) -> None:
        """What came over the fleet's channel; all but what owners have gained is ignored."""
        for shard, owned in _gains(news):
            if shard in self._owned and owned.epoch > self._owned[shard].epoch:
                self._owned[shard] = owned
                self.moved_at = now
        if self.whole_at is None and not self.unowned:
            self.whole_at = now

    def lose(self, worker: str) -> None:
        """It was killed."""
        for shard, owned in self._owned.items():
            if owned.worker == worker:
                self._owned[shard] = _Owned(None, owned.epoch)
        if self.unowned:
            self.whole_at = None

    def owner_of(self, shard: int) -> str | None:
        """Whose it is; None: nobody's."""
        return self._owned[shard].worker

    def shards_of(self, worker: str) -> int:
        """How many are its own."""
        return self._counts()[worker]

    def is_spread(self, workers: int) -> bool:
        """Every shard has an owner, and none of so many workers has far more than its part."""
        most = max(self._counts().values())
        return not self.unowned and most <= _UNEVEN * SHARDS / workers

    @property
    def unowned(self) -> int:
        """How many are nobody's."""
        return self._counts()[None]

    def _counts(self) -> Counter[str | None]:
        return Counter(owned.worker for owned in self._owned.values())


def _gains(news: str) -> Iterable[tuple[int, _Owned]]:
    """`{"owner": {"worker": ...}, "epochs": {"17": 3}}`; nothing of what is something else."""
    try:
        told: Any = json.loads(news)
        worker = told["owner"]["worker"]
        return [(int(shard), _Owned(worker, epoch)) for shard, epoch in told["epochs"].items()]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
