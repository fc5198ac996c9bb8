"""One connection in a worker that dials out, from its claim to its end.

    wait for who served it here before -> claim -> run -> ended by itself -> wait -> claim -> ...
      any time: its shard is given away, or it is not wanted any more -> cancelled -> 5 s to clean up -> closed
                its shard is lost                                     -> cancelled -> closed where it waits again

Rules:
- no step of a handler is run without asking for the right first (`guarded`);
- two runs of one connection never overlap here: the next one begins when the last one has ended;
- a handler that shields itself from its end is closed, so that nothing of it runs any more.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from herdgate_gateway.connections.limits import canonical
from herdgate_gateway.leases.clocks import Clock
from herdgate_gateway.leases.effects import NotOwnerError, UnknownOutcomeError
from herdgate_gateway.leases.rows import ConnectionRow
from herdgate_gateway.worker_kit.backoff import Backoff
from herdgate_gateway.worker_kit.duty import Owning
from herdgate_gateway.worker_kit.guarded import Guarded
from herdgate_gateway.worker_kit.handlers import Connection, Handler
from herdgate_gateway.worker_kit.wants import Known

__all__ = ["CLEAN_UP_S", "Run", "Surroundings"]

CLEAN_UP_S = 5.0
"""Seconds that a handler has from its cancellation to its end."""

_AGAIN_S = 0.2  # to twice of it, after a claim that nobody knows of
_logger = logging.getLogger("herdgate.dialling")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all runs share.

    Attributes:
        random: uniform numbers in [0, 1).
        claims: bounds those that are under way.
    """

    handler: Handler
    owner: Owning
    clock: Clock
    random: Callable[[], float]
    claims: asyncio.Semaphore


class Run:
    """A connection, as long as one ownership of its shard, one want and one set of attrs last.

    Args:
        after: who serves it here still, and is about to end; None: nobody does.

    Attributes:
        task: what it runs in.
        is_asked: True once it was told to end; one that has ended otherwise was not ours, or not wanted.
        known: see `wants.Known`.
    """

    def __init__(
        self, name: str, shard: int, epoch: int, around: Surroundings, after: "asyncio.Task[None] | None"
    ) -> None:
        self.name, self._shard, self._epoch, self._around = name, shard, epoch, around
        self.after = after
        self._backoff = Backoff(around.random)
        self._said: set[type[BaseException]] = set()
        self._guarded: Guarded | None = None
        self._is_ending = False
        self._closing: asyncio.TimerHandle | None = None
        self.is_asked = False
        self.known = Known()
        self.task = asyncio.get_running_loop().create_task(self._live(), name=f"connection {name}")

    def end(self) -> None:
        """Cancel it: five seconds later it has ended, at once if its shard is lost."""
        self.is_asked = True
        self._begin_to_end()
        self.task.cancel()

    async def _live(self) -> None:
        try:
            if self.after is not None:
                await asyncio.wait([self.after])
            while (row := await self._claim()) is not None:
                began = self._around.clock.now()
                self.known = Known(began, canonical(row.attrs))
                await self._run(row)
                if self._is_ending:
                    return
                await self._around.clock.sleep(self._backoff.after(self._around.clock.now() - began))
        finally:
            if self._closing is not None:
                self._closing.cancel()

    async def _claim(self) -> ConnectionRow | None:
        """Its row, as it is now; None: it is not ours, or not wanted."""
        while True:
            async with self._around.claims:
                effects = self._around.owner.effects
                if effects is None or self._around.owner.epoch(self._shard) != self._epoch:
                    return None
                try:
                    row = await effects.claim_row(self.name)
                except NotOwnerError:
                    return None
                except UnknownOutcomeError:
                    row = None
            if row is not None:
                return row if row.want == "STARTED" and row.epoch == self._epoch else None
            await self._around.clock.sleep(_AGAIN_S * (1 + self._around.random()))

    async def _run(self, row: ConnectionRow) -> None:
        """The handler, to its end."""
        around = self._around
        connection = Connection(row, self._shard, self._epoch, lambda: around.owner.effects)
        try:
            self._guarded = Guarded(around.handler(connection), self._may_step)
            await self._guarded
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if self._is_ending or (task is not None and task.cancelling()):
                raise
            self._say(error)  # something that the handler waited for was cancelled
        except Exception as error:  # noqa: BLE001 - it is the handler's, and the connection shall run
            self._say(error)
        finally:
            self._guarded = None

    def _may_step(self) -> bool:
        if self._around.owner.epoch(self._shard) == self._epoch:
            return True
        self._begin_to_end()
        return False

    def _begin_to_end(self) -> None:
        if not self._is_ending:
            self._is_ending = True
            self._closing = asyncio.get_running_loop().call_later(CLEAN_UP_S, self._close)

    def _close(self) -> None:
        if self._guarded is not None:
            _logger.warning("the handler of %s did not end within %g s, and is closed", self.name, CLEAN_UP_S)
            self._guarded.abandon()
            self.task.cancel()

    def _say(self, error: BaseException) -> None:
        """Once for each kind: it may fail every minute, for years."""
        if type(error) not in self._said:
            self._said.add(type(error))
            _logger.error("the handler of %s failed: %r", self.name, error, exc_info=error)
