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
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from herdgate_gateway.leases.acts import Write
from herdgate_gateway.leases.clocks import BootClock
from herdgate_gateway.leases.dynamo import DynamoLeases, Place
from herdgate_gateway.leases.effects import NotOwnerError, UnknownOutcomeError
from herdgate_gateway.leases.guardian import heed_no_more
from herdgate_gateway.leases.owner import ShardOwner
from herdgate_gateway.leases.registration import NameInUseError
from herdgate_gateway.leases.rows import shard_of
from herdgate_gateway.leases.table import Done, Outcome
from herdgate_gateway.leases.worker_process import Joining, on_stop_signs, run_guarded, setup_of

__all__ = ["Holding", "hold", "main"]

_ACT_S = 0.05
_TELL_S = 1.0


@dataclass(frozen=True, slots=True)
class Holding:
    """What such a worker is told.

    Attributes:
        connections: ids to act on.
    """

    joining: Joining
    connections: Sequence[str] = ()


def hold(holding: Holding) -> int:
    """Run one behind a guardian; its exit code.

    Raises:
        HerdgateError: the table cannot be read.
    """
    return run_guarded(
        holding.joining, [sys.executable, "-m", "herdgate_gateway.leases.holding", json.dumps(asdict(holding))]
    )


def main() -> None:
    """Own shards until SIGTERM."""
    told = json.loads(sys.argv[1])
    try:
        asyncio.run(_own(Holding(Joining(**told["joining"]), told["connections"])))
    except NameInUseError as error:
        sys.exit(f"herdgate: {error}")


async def _own(holding: Holding) -> None:
    joining, clock = holding.joining, BootClock()
    notices, table = joining.notices(), _Watched(joining.place)
    setup = setup_of(joining, table, lambda: _Watched(joining.place), notices, lambda: 0)
    owner = ShardOwner(setup, _say(clock, "gained"), _say(clock, "lost"))
    on_stop_signs(owner.stop)
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
        heed_no_more()


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


def _say(clock: BootClock, what: str) -> Callable[[int, int], None]:
    def say(shard: int, epoch: int) -> None:
        _write_line(at=clock.now(), epoch=epoch, **{what: shard})

    return say


def _write_line(**told: Any) -> None:
    with suppress(BrokenPipeError):  # nobody listens
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
