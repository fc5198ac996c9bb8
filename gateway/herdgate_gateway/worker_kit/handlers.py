"""A handler of `--dial`, and the connection that it is called with.

async def handler(connection):
    async for number, message in subscribe(connection.attrs["url"], after=connection.last_seq):
        ...
        await connection.checkpoint(number)
"""

import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from herdgate_gateway.errors import ConfigurationError
from herdgate_gateway.leases.effects import Effects, NotOwnerError
from herdgate_gateway.leases.rows import ConnectionRow
from herdgate_gateway.worker_kit.imported import import_named

__all__ = ["Connection", "Handler", "load_handler"]


class Connection:
    """What a handler gets.

    Attributes:
        id: of the connection.
        shard: it belongs to.
        epoch: of the ownership; a condition for whatever the handler writes elsewhere.
        attrs: as they were given when it was started.
        last_seq: how far it has come, of this run or one before; None: nowhere yet.
    """

    def __init__(self, row: ConnectionRow, shard: int, epoch: int, effects: Callable[[], Effects | None]) -> None:
        self.id, self.shard, self.epoch = row.id, shard, epoch
        self.attrs: Mapping[str, Any] = row.attrs
        self.last_seq = row.last_seq
        self._effects = effects

    async def checkpoint(self, seq: int) -> None:
        """Say how far it has come; what is not further changes nothing.

        Args:
            seq: any whole number of at most 38 digits.

        Raises:
            NotOwnerError: it is another worker's by now; what was done since the last checkpoint counts for nothing.
            UnknownOutcomeError: the table did not say; it may be tried again.
            TypeError, ValueError: this is no such number.
        """
        if isinstance(seq, bool) or not isinstance(seq, int):
            raise TypeError(f"a checkpoint is a whole number, not {type(seq).__name__}")
        effects = self._effects()
        if effects is None:
            raise NotOwnerError(f"connection {self.id!r} is not in a shard of this worker")
        await effects.checkpoint(self.id, self.epoch, seq)
        self.last_seq = seq if self.last_seq is None else max(seq, self.last_seq)


Handler = Callable[[Connection], Coroutine[Any, Any, object]]
"""An `async def`, called for each run of a connection."""


def load_handler(name: str) -> Handler:
    """The handler that an import string names.

    Raises:
        HerdgateError: there is none, or it is no `async def`.
    """
    found = import_named("--dial", name)
    if not _is_async(found):
        raise ConfigurationError("--dial", name, "it has to be an async def, called with a connection")
    handler: Handler = found
    return handler


def _is_async(found: object) -> bool:
    """True for an async function, and for an object that is called as one."""
    if inspect.iscoroutinefunction(found):
        return True
    return not inspect.isclass(found) and inspect.iscoroutinefunction(getattr(found, "__call__", None))  # noqa: B004
