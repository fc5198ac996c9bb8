"""Beats on a thread of their own: a busy loop keeps its lease, a blocked one loses it. In real time."""

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from herdgate_gateway.leases.acts import Write, register
from herdgate_gateway.leases.beat_thread import ThreadedBeats
from herdgate_gateway.leases.clocks import BootClock
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.memory import MemoryLeases
from herdgate_gateway.leases.rights import Right
from herdgate_gateway.leases.rows import WorkerRow, worker_key
from herdgate_gateway.leases.table import Outcome
from tests.wire import eventually

LEASE_S = 1.0


class Watched(MemoryLeases):
    """Tells of each write, and of its thread."""

    def __init__(self, rows: MemoryLeases) -> None:
        super().__init__()
        self._partitions = rows._partitions
        self.threads: list[str] = []
        self.is_closed = False

    async def write(self, write: Write) -> Outcome:
        self.threads.append(threading.current_thread().name)
        return await super().write(write)

    async def aclose(self) -> None:
        self.is_closed = True


async def begun(rows: MemoryLeases) -> Life:
    row = WorkerRow("a", "a.1", None, "UP", 0, int(LEASE_S * 1_000), "", 1, 0)
    await rows.write(register("fleet", row, None))
    return Life(rows, BootClock(), "fleet", row, Right(LEASE_S))


async def beating(life: Life, table: Watched) -> tuple[asyncio.Task[None], list[str]]:
    told: list[str] = []
    beats = ThreadedBeats(life, lambda: table, beat_s=LEASE_S / 10, load=lambda: 0)
    task = asyncio.ensure_future(beats.run(lambda: told.append("renewed"), lambda: told.append("lost")))
    await eventually(_is("renewed", told), "the first beat came through")
    return task, told


def _is(what: str, told: list[str]) -> Callable[[], "asyncio.Future[bool]"]:
    async def look() -> bool:
        return what in told

    return lambda: asyncio.ensure_future(look())


async def ended(task: asyncio.Task[None], table: Watched) -> None:
    async def is_closed() -> bool:
        return table.is_closed

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await eventually(is_closed, "the thread has closed its table")


async def test_beats_go_out_from_a_thread_of_their_own() -> None:
    rows = MemoryLeases()
    life, table = await begun(rows), Watched(rows)
    task, _ = await beating(life, table)

    assert set(table.threads) == {"herdgate-beats"}
    assert life.may_act()
    await ended(task, table)


async def test_a_blocked_loop_loses_its_right() -> None:
    rows = MemoryLeases()
    life, table = await begun(rows), Watched(rows)
    task, _ = await beating(life, table)
    time.sleep(2 * LEASE_S)  # what a handler does that should not  # noqa: ASYNC251

    assert not life.may_act()
    assert len(table.threads) < 10
    await ended(task, table)


async def test_a_loop_that_is_only_busy_keeps_it() -> None:
    rows = MemoryLeases()
    life, table = await begun(rows), Watched(rows)
    task, _ = await beating(life, table)
    for _ in range(10):
        time.sleep(LEASE_S / 5)  # noqa: ASYNC251
        await asyncio.sleep(0)
        assert life.may_act()
    await ended(task, table)


async def test_the_loop_that_acts_is_told_of_the_end() -> None:
    rows = MemoryLeases()
    life, table = await begun(rows), Watched(rows)
    task, told = await beating(life, table)
    key = worker_key("fleet", "a")
    rows._partitions[key.pk][key.sk]["st"] = "DEAD"
    await asyncio.wait_for(task, 5)

    await eventually(_is("lost", told), "the loss was told")
    assert life.right.is_lost


async def test_a_thread_that_fails_says_so_where_it_is_waited_for() -> None:
    rows = MemoryLeases()
    life = await begun(rows)

    def load() -> int:
        raise ZeroDivisionError

    beats = ThreadedBeats(life, lambda: Watched(rows), beat_s=LEASE_S / 10, load=load)
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(beats.run(lambda: None, lambda: None), 5)
