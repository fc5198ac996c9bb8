"""A worker that owns shards and does nothing with them: to try a table, and to measure how fast shards change hands.

    herdgate leases hold -> guardian -> python -m herdgate_gateway.leases.holding

Each gain and loss is a line of JSON on standard output, with the moment by the boot clock: `{"at": 12.5, "gained": 17,
"epoch": 3}`. Connections that are named are claimed and checkpointed all the time, with a line for each that was
accepted, which tells the epoch that the row had then; once a second a line says how many writes were sent. SIGTERM and
Ctrl-C give everything away.
"""

import asyncio
import itertools
import json
import random
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

from herdgate_gateway.errors import HerdgateError
from herdgate_gateway.leases.acts import Write, fence_child
from herdgate_gateway.leases.beat_thread import ThreadedBeats
from herdgate_gateway.leases.certainty import until_known
from herdgate_gateway.leases.clocks import BootClock
from herdgate_gateway.leases.dynamo import DynamoLeases, Place
from herdgate_gateway.leases.effects import NotOwnerError, UnknownOutcomeError
from herdgate_gateway.leases.guardian import guard, tell_guardian
from herdgate_gateway.leases.notices import Notices
from herdgate_gateway.leases.owner import Setup, ShardOwner
from herdgate_gateway.leases.registration import NameInUseError
from herdgate_gateway.leases.rows import WorkerRow, shard_of, worker_key
from herdgate_gateway.leases.table import Done, Outcome, TableError

__all__ = ["Holding", "hold", "main"]

_FENCE_S = 10.0
_ACT_S = 0.05
_TELL_S = 1.0


@dataclass(frozen=True, slots=True)
class Holding:
    """What such a worker is told.

    Attributes:
        redis: URL for news; None: none.
        connections: ids to act on.
        lease_s: how long a right lasts; a beat is a third of it.
    """

    table: str
    region: str | None
    endpoint_url: str | None
    fleet: str
    worker: str
    addr: str
    redis: str | None
    lease_s: float
    connections: Sequence[str] = ()

    @property
    def place(self) -> Place:
        """Of the table."""
        return Place(self.table, self.region, self.endpoint_url)


def hold(holding: Holding) -> int:
    """Run one behind a guardian; its exit code.

    Raises:
        HerdgateError: the table cannot be read.
    """
    command = [sys.executable, "-m", "herdgate_gateway.leases.holding", json.dumps(asdict(holding))]
    try:
        return asyncio.run(_guard(holding, command))
    except TableError as error:
        raise HerdgateError(str(error)) from error


async def _guard(holding: Holding, command: list[str]) -> int:
    table, notices = DynamoLeases(holding.place), _notices(holding)
    try:
        await table.read(worker_key(holding.fleet, holding.worker), strong=True)

        async def declare_dead(inc: str) -> None:
            write = fence_child(holding.fleet, holding.worker, inc)
            async with asyncio.timeout(_FENCE_S):
                await until_known(table, BootClock(), write)
            if notices is not None:
                await notices.tell_death(inc)

        return await guard(command, declare_dead)
    finally:
        await table.aclose()
        if notices is not None:
            await notices.aclose()


def main() -> None:
    """Own shards until SIGTERM."""
    try:
        asyncio.run(_own(Holding(**json.loads(sys.argv[1]))))
    except NameInUseError as error:
        sys.exit(f"herdgate: {error}")


async def _own(holding: Holding) -> None:
    clock, notices = BootClock(), _notices(holding)
    row = WorkerRow(holding.worker, "", None, "UP", 0, int(holding.lease_s * 1_000), holding.addr, 1, 0)
    table = _Watched(holding.place)
    setup = Setup(
        table,
        clock,
        holding.fleet,
        row,
        lambda life: ThreadedBeats(life, lambda: _Watched(holding.place), beat_s=holding.lease_s / 3, load=lambda: 0),
        _new_inc,
        random.random,
        notices.tell if notices is not None else lambda row, shard: None,
    )
    owner = ShardOwner(setup, _say(clock, "gained"), _say(clock, "lost"))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _start, owner.stop)
    beside = [
        asyncio.ensure_future(_act(owner, table, holding.connections)),
        asyncio.ensure_future(_tell_writes(clock)),
    ]
    if notices is not None:
        beside.append(asyncio.ensure_future(notices.run(owner)))
    try:
        await owner.run()
    finally:
        for task in beside:
            task.cancel()
        if notices is not None:
            await notices.aclose()
        await table.aclose()


class _Watched(DynamoLeases):
    """Counts the writes of all its kind in this process, and keeps the epochs of rows that took one."""

    sent = 0

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.epochs: dict[str, int] = {}

    async def write(self, write: Write) -> Outcome:
        _Watched.sent += 1
        outcome = await super().write(write)
        if isinstance(outcome, Done) and "epoch" in outcome.item:
            self.epochs[write.key.sk] = outcome.item["epoch"]
        return outcome


async def _act(owner: ShardOwner, table: _Watched, connections: Sequence[str]) -> None:
    """Do what an owner does to its connections."""
    claimed: dict[str, int] = {}
    for number in itertools.count(1):
        await asyncio.sleep(_ACT_S)
        for name in connections:
            epoch, effects = owner.epoch(shard_of(name)), owner.effects
            if epoch is None or effects is None:
                continue
            with suppress(NotOwnerError, UnknownOutcomeError):
                if claimed.get(name) != epoch:
                    claimed[name] = (await effects.claim(name)).epoch
                await effects.checkpoint(name, epoch, number)
                _write_line(at=BootClock().now(), acted=name, epoch=epoch, row_epoch=table.epochs[f"C#{name}"])


async def _tell_writes(clock: BootClock) -> None:
    while True:
        _write_line(at=clock.now(), writes=_Watched.sent)
        await asyncio.sleep(_TELL_S)


def _notices(holding: Holding) -> Notices | None:
    if holding.redis is None:
        return None
    from redis.asyncio import Redis

    try:
        redis = Redis.from_url(holding.redis)
    except ValueError as error:
        raise HerdgateError(f"--redis: {error}") from None
    return Notices(redis, f"herdgate:leases:{holding.fleet}", holding.worker)


def _new_inc() -> str:
    inc = uuid4().hex
    tell_guardian(inc)
    return inc


def _say(clock: BootClock, what: str) -> Callable[[int, int], None]:
    def say(shard: int, epoch: int) -> None:
        _write_line(at=clock.now(), epoch=epoch, **{what: shard})

    return say


def _write_line(**told: Any) -> None:
    with suppress(BrokenPipeError):  # nobody listens
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


_started: set[asyncio.Future[Any]] = set()


def _start(act: Callable[[], Awaitable[None]]) -> None:
    task = asyncio.ensure_future(act())
    _started.add(task)
    task.add_done_callback(_started.discard)


if __name__ == "__main__":
    main()
