"""What an owner does to the connections of its shards: claims them, and says how far they have come.

Both carry the epoch of the ownership, and the table takes nothing from a lower one than it has seen: so whatever a
stale owner still sends, it changes nothing. Asking for one's right before sending only keeps useless requests few.
"""

from collections.abc import Callable
from typing import NamedTuple

from herdgate_gateway.leases.acts import checkpoint, claim
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.rows import ConnectionRow, shard_of
from herdgate_gateway.leases.table import Done, Lost, Outcome

__all__ = ["Claimed", "Effects", "NotOwnerError", "UnknownOutcomeError"]


class NotOwnerError(Exception):
    """The connection is not this worker's to serve, or not any more."""


class UnknownOutcomeError(Exception):
    """Nobody knows whether it was done: try again."""


class Claimed(NamedTuple):
    """A connection that may be served.

    Attributes:
        epoch: to checkpoint with.
        last_seq: where to go on; None: at the beginning.
    """

    epoch: int
    last_seq: int | None


class Effects:
    """Of one life.

    Args:
        epoch_of: of a shard that may be acted on now; None: it may not.
        overtaken: told of a shard and an epoch that a later owner has gone beyond.
    """

    def __init__(
        self, life: Life, epoch_of: Callable[[int], int | None], overtaken: Callable[[int, int], None]
    ) -> None:
        self._life, self._epoch_of, self._overtaken = life, epoch_of, overtaken

    async def claim(self, connection_id: str) -> Claimed:
        """Serve a connection from now on; as `claim_row`."""
        row, epoch = await self._claim(connection_id)
        return Claimed(epoch, row.last_seq)

    async def claim_row(self, connection_id: str) -> ConnectionRow:
        """Serve a connection from now on: its row, with our epoch in it.

        It is claimed whether it shall run or not: that is for whoever serves it to look at.

        Raises:
            NotOwnerError: another worker owns it, or there is no such connection.
            UnknownOutcomeError: the table did not say.
        """
        row, _ = await self._claim(connection_id)
        return row

    async def _claim(self, connection_id: str) -> tuple[ConnectionRow, int]:
        epoch = self._owned(connection_id)
        outcome = await self._life.table.write(claim(self._life.fleet, connection_id, epoch))
        done = self._done(connection_id, epoch, outcome)
        if self._owned(connection_id) != epoch:
            raise NotOwnerError(f"connection {connection_id!r} has changed hands")
        return ConnectionRow.of(done.item), epoch

    async def checkpoint(self, connection_id: str, epoch: int, last_seq: int) -> None:
        """Say how far it has come; nothing changes for what is not newer.

        Args:
            epoch: it was claimed with.

        Raises:
            NotOwnerError: it is not ours any more.
            UnknownOutcomeError: the table did not say.
        """
        if self._owned(connection_id) != epoch:
            raise NotOwnerError(f"connection {connection_id!r} has changed hands")
        outcome = await self._life.table.write(checkpoint(self._life.fleet, connection_id, epoch, last_seq))
        is_known = isinstance(outcome, Lost) and outcome.item is not None and outcome.item.get("epoch") == epoch
        if not is_known:
            self._done(connection_id, epoch, outcome)

    def _owned(self, connection_id: str) -> int:
        epoch = self._epoch_of(shard_of(connection_id)) if self._life.may_act() else None
        if epoch is None:
            raise NotOwnerError(f"connection {connection_id!r} is not in a shard of this worker")
        return epoch

    def _done(self, connection_id: str, epoch: int, outcome: Outcome) -> Done:
        if isinstance(outcome, Done):
            return outcome
        if isinstance(outcome, Lost):
            if outcome.item is not None and outcome.item.get("epoch", 0) > epoch:
                self._overtaken(shard_of(connection_id), epoch)
            raise NotOwnerError(f"connection {connection_id!r} is another worker's, or there is none of that name")
        raise UnknownOutcomeError(f"nobody knows what came of connection {connection_id!r}: {outcome.why}")
