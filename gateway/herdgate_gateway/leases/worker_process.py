"""What every process that owns shards is made of: where it joins, a guardian before it, signs to stop.

run_guarded -> guardian -> the process itself: Joining, setup_of -> ShardOwner
"""

import asyncio
import random
import signal
import socket
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from herdgate_gateway.errors import HerdgateError
from herdgate_gateway.leases.acts import fence_child
from herdgate_gateway.leases.beat_thread import ThreadedBeats
from herdgate_gateway.leases.certainty import until_known
from herdgate_gateway.leases.channel import open_channel
from herdgate_gateway.leases.clocks import BootClock
from herdgate_gateway.leases.dynamo import DynamoLeases, Place
from herdgate_gateway.leases.guardian import guard, heed_no_more, tell_guardian
from herdgate_gateway.leases.notices import Notices
from herdgate_gateway.leases.owner import Setup
from herdgate_gateway.leases.rows import WorkerRow, worker_key
from herdgate_gateway.leases.table import LeaseTable, TableError

__all__ = ["Joining", "on_stop_signs", "run_guarded", "setup_of"]

_FENCE_S = 10.0
_START_S = 10.0  # the first answer may take longer than one that a right depends on


@dataclass(frozen=True, slots=True)
class Joining:
    """What such a process is told of its fleet, and what it is to it.

    Attributes:
        worker: its name.
        addr: where gateways connect to; empty: nowhere.
        capacity: see `WorkerRow`.
        redis: URL for news; None: none.
        lease_s: how long a right lasts; a beat is a third of it.
        generation: see `Setup`.
    """

    table: str
    region: str | None
    endpoint_url: str | None
    fleet: str
    worker: str
    addr: str
    capacity: int
    redis: str | None
    lease_s: float
    generation: int

    @property
    def place(self) -> Place:
        """Of the table."""
        return Place(self.table, self.region, self.endpoint_url)

    @property
    def row(self) -> WorkerRow:
        """Of a life to be, but for its inc."""
        return WorkerRow(self.worker, "", None, "UP", 0, int(self.lease_s * 1_000), self.addr, self.capacity, 0)

    def notices(self) -> Notices | None:
        """News over Redis; None: there is none.

        Raises:
            ConfigurationError: see `open_channel`.
        """
        if self.redis is None:
            return None
        return Notices(open_channel(self.redis, self.fleet, "--redis"), self.worker)


def run_guarded(joining: Joining, command: Sequence[str], hand_on: Sequence[socket.socket] = ()) -> int:
    """Run a process that joins behind a guardian; its exit code.

    Args:
        hand_on: see `guard`.

    Raises:
        HerdgateError: the table cannot be read, or Redis not be asked.
    """
    try:
        return asyncio.run(_guard(joining, command, hand_on))
    except TableError as error:
        raise HerdgateError(str(error)) from error


async def _guard(joining: Joining, command: Sequence[str], hand_on: Sequence[socket.socket]) -> int:
    await _check(joining)
    table, notices = DynamoLeases(joining.place), joining.notices()
    try:
        await table.warm_up()

        async def declare_dead(inc: str) -> None:
            write = fence_child(joining.fleet, joining.worker, inc)
            async with asyncio.timeout(_FENCE_S):
                await until_known(table, BootClock(), write)
            if notices is not None:
                await notices.tell_death(inc)

        return await guard(joining.worker, command, declare_dead, hand_on)
    finally:
        await table.aclose()
        if notices is not None:
            await notices.aclose()
        heed_no_more()


async def _check(joining: Joining) -> None:
    """Look whether the table can be read at all."""
    table = DynamoLeases(joining.place, call_s=_START_S)
    try:
        await table.read(worker_key(joining.fleet, joining.worker), strong=True)
    finally:
        await table.aclose()


def setup_of(
    joining: Joining,
    table: LeaseTable,
    beat_table: Callable[[], LeaseTable],
    notices: Notices | None,
    load: Callable[[], int],
) -> Setup:
    """Of the owner in such a process.

    Args:
        table: a client of the loop that acts.
        beat_table: makes the client of the thread of the beats.
        load: see `ThreadedBeats`.
    """
    return Setup(
        table,
        BootClock(),
        joining.fleet,
        joining.row,
        lambda life: ThreadedBeats(life, beat_table, beat_s=joining.lease_s / 3, load=load),
        _new_inc,
        random.random,
        notices.tell if notices is not None else lambda row, shard: None,
        generation=joining.generation,
    )


def on_stop_signs(act: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Begin this at each SIGTERM and Ctrl-C."""
    started: set[asyncio.Task[None]] = set()

    def start() -> None:
        task = asyncio.ensure_future(act())
        started.add(task)
        task.add_done_callback(started.discard)

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, start)


def _new_inc() -> str:
    inc = uuid4().hex
    tell_guardian(inc)
    return inc
