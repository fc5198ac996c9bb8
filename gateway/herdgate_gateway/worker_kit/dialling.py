"""`herdgate worker --dial module:handler`: runs a handler for each connection that is wanted, in the shards it owns.

    a shard is gained -> its rows are read, strongly -> each that is wanted is claimed -> its handler runs
    a want or attrs change -> the shard is read again, at once where there is news, else within a minute
    a shard is lost -> its handlers are cancelled at once, and wait for nothing any more
    the worker stops -> the handlers of a shard end, and then it is given away

So a handler runs in one process of the fleet at a time: whoever owns the shard, with an epoch that only grows.
"""

import asyncio
import logging
import random
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from math import inf

from herdgate_gateway.leases.rows import ConnectionRow, Item, shard_key
from herdgate_gateway.leases.table import TableError
from herdgate_gateway.worker_kit.duty import Parts
from herdgate_gateway.worker_kit.handlers import Handler
from herdgate_gateway.worker_kit.runs import CLEAN_UP_S, Run, Surroundings
from herdgate_gateway.worker_kit.wants import Agenda, changes

__all__ = ["Dialling"]

_CLAIMS = 64  # at once
_READS = 8  # at once: what has just been gained must not keep the table from those who hold leases
_SOON_S = 1.0  # until a shard is looked at again that could not be read, or where a run ended by itself
_UNCLEAR_S = 0.1
_SLACK_S = 1.0
_SAY_EVERY_S = 60.0
_LEAVES_WITHIN_S = 30.0  # after its release; a shard that is ours even then was not given away after all
_logger = logging.getLogger("herdgate.dialling")


class _Shard:
    """One ownership of a shard.

    Attributes:
        quiet_until: by the clock; before, nothing begins in it.
    """

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.quiet_until = -inf
        self.runs: dict[str, Run] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    def end(self) -> None:
        for run in self.runs.values():
            run.end()
        self.runs.clear()

    def lose(self) -> None:
        """As `end`; what cleans up hears of it too."""
        self.end()
        for task in self.tasks:
            task.cancel()


class Dialling:
    """A `duty.Duty`.

    Args:
        parts: what it works with.
        handler: called for each run of a connection.
    """

    def __init__(self, parts: Parts, handler: Handler) -> None:
        self._parts = parts
        self._around = Surroundings(handler, parts.owner, parts.clock, random.random, asyncio.Semaphore(_CLAIMS))
        self._agenda = Agenda(random.random)
        self._shards: dict[int, _Shard] = {}
        self._latest: dict[str, asyncio.Task[None]] = {}
        self._woken = asyncio.Event()
        self._said_at = -inf

    def gained(self, shard: int, epoch: int) -> None:
        """As `Duty.gained`."""
        self._shards[shard] = _Shard(epoch)
        self._look([shard])

    def lost(self, shard: int, epoch: int) -> None:
        """As `Duty.lost`."""
        held = self._shards.get(shard)
        if held is not None and held.epoch == epoch:
            del self._shards[shard]
            self._agenda.drop(shard)
            held.lose()

    def wants_changed(self, shards: Iterable[int]) -> None:
        """As `Duty.wants_changed`."""
        self._look(shards)

    def weights(self) -> Mapping[int, int]:
        """As `Duty.weights`."""
        return {shard: len(held.runs) for shard, held in self._shards.items()}

    def load(self) -> int:
        """As `Duty.load`."""
        return len(self._latest)

    async def start(self) -> None:
        """Nothing has to be ready."""

    async def release(self, shard: int) -> None:
        """As `Duty.release`: it ends when the handlers have, or were closed."""
        held = self._shards.get(shard)
        if held is None:
            return
        self._agenda.drop(shard)
        self._quieten(shard, held, self._parts.clock.now() + _LEAVES_WITHIN_S)
        await _ended(held.tasks)

    async def run(self) -> None:
        """Look at what is due, until cancelled."""
        while True:
            self._woken.clear()
            now = self._parts.clock.now()
            if due := self._agenda.take_due(now, _READS):
                await asyncio.gather(*map(self._read, due))
                continue
            wait_s = self._agenda.wait_s(now)
            with suppress(TimeoutError):
                async with asyncio.timeout(None if wait_s == inf else wait_s):
                    await self._woken.wait()

    async def aclose(self) -> None:
        """End all handlers; it takes as long as their clean-up."""
        for shard, held in self._shards.items():
            self._quieten(shard, held, inf)
        await _ended(self._latest.values())

    def _look(self, shards: Iterable[int], in_s: float = 0.0) -> None:
        at = self._parts.clock.now() + in_s
        for shard in shards:
            held = self._shards.get(shard)
            if held is not None:
                self._agenda.look(shard, max(at, held.quiet_until))
        self._woken.set()

    def _quieten(self, shard: int, held: _Shard, until: float) -> None:
        held.quiet_until = until
        held.end()
        self._look([shard])

    async def _read(self, shard: int) -> None:
        """What is wanted in it."""
        clock, held = self._parts.clock, self._shards.get(shard)
        began = clock.now()
        try:
            items = await self._parts.table.query(shard_key(self._parts.fleet, shard).pk, prefix="C#", strong=True)
        except TableError as error:
            self._say(error)
            self._look([shard], _SOON_S * (1 + self._around.random()))
            return
        if held is not None and self._shards.get(shard) is held and clock.now() >= held.quiet_until:
            self._agenda.looked(shard, clock.now())
            self._change(shard, held, _rows(items), began)

    def _change(self, shard: int, held: _Shard, rows: Collection[ConnectionRow], began: float) -> None:
        needed = changes(rows, {name: run.known for name, run in held.runs.items()}, began)
        for name in (*needed.end, *needed.restart):
            held.runs.pop(name).end()
        for name in (*needed.start, *needed.restart):
            self._start(name, shard, held)
        if needed.is_unclear:
            self._look([shard], _UNCLEAR_S)

    def _start(self, name: str, shard: int, held: _Shard) -> None:
        before = self._latest.get(name)
        run = held.runs[name] = Run(name, shard, held.epoch, self._around, before)
        self._latest[name] = run.task
        held.tasks.add(run.task)
        if before is not None:
            held.tasks.add(before)
            before.add_done_callback(held.tasks.discard)
        run.task.add_done_callback(lambda task: self._ended(task, run, shard, held))

    def _ended(self, task: "asyncio.Task[None]", run: Run, shard: int, held: _Shard) -> None:
        held.tasks.discard(task)
        if self._latest.get(run.name) is task:
            del self._latest[run.name]
            if run.after is not None and not run.after.done():  # it was ended before it had its turn
                self._latest[run.name] = run.after
        if not task.cancelled() and (error := task.exception()) is not None:
            _logger.error("connection %s broke, and will be looked at again", run.name, exc_info=error)
        if held.runs.get(run.name) is run:
            del held.runs[run.name]
        if not run.is_asked:  # not wanted, or not ours; or the right was over, and is back
            self._look([shard], _SOON_S)

    def _say(self, error: TableError) -> None:
        now = self._parts.clock.now()
        if now >= self._said_at + _SAY_EVERY_S:
            self._said_at = now
            _logger.warning("the lease table does not say what is wanted: %s", error)


def _rows(items: Iterable[Item]) -> list[ConnectionRow]:
    """Those that say what is wanted; others are nobody's of ours."""
    return [ConnectionRow.of(item) for item in items if "want" in item]


async def _ended(tasks: Iterable["asyncio.Task[None]"]) -> None:
    """Wait for them; each has its own time to end."""
    if left := list(tasks):
        await asyncio.wait(left, timeout=CLEAN_UP_S + _SLACK_S)
