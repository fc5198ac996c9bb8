"""Whole workers that dial out, on virtual time: whatever happens, a handler runs in one of them at a time."""

import asyncio
import itertools
import random
from collections.abc import Iterable

import pytest

from tests.herdgate_gateway.leases.fleet import Fleet, until, virtually
from tests.herdgate_gateway.worker_kit.dialled import Dialler, Diary

SETTLED_S = 20.0


def overlaps(diary: Diary, names: Iterable[str]) -> list[str]:
    """Connections that ran in two ownerships at the same time: from the first line of one to its last one."""
    found = []
    for name in names:
        spans: dict[int, tuple[float, float]] = {}
        for line in diary.lines:
            if line.id == name:
                first, _ = spans.get(line.epoch, (line.at, line.at))
                spans[line.epoch] = (first, line.at)
        in_order = [spans[epoch] for epoch in sorted(spans)]
        found += [name for (_, last), (first, _) in itertools.pairwise(in_order) if first < last]
    return found


class Play:
    """Two workers, a connection in each shard."""

    def __init__(self) -> None:
        self.fleet, self.diary = Fleet(), Diary()
        self.names: list[str] = []

    async def begin(self) -> None:
        self.names = [await self.fleet.connect(shard) for shard in range(self.fleet.shards)]
        for name in ("a", "b"):
            self.start(name)
        await self.settled()

    def start(self, name: str) -> Dialler:
        return Dialler(self.fleet, name, self.diary.handler(name))

    async def settled(self) -> None:
        """Each handler runs, and goes on."""
        marks = {name: self.diary.count("on", name) for name in self.names}
        await until(lambda: all(self.diary.count("on", n) > marks[n] + 20 for n in self.names), "all run", within_s=60)

    def running_at(self, name: str) -> set[str]:
        """Workers in which it has run in the last second."""
        now = asyncio.get_running_loop().time()
        return {line.worker for line in self.diary.lines if line.id == name and line.at > now - 1}


@virtually
async def test_worker_that_is_killed_is_followed() -> None:
    play = Play()
    await play.begin()
    await play.fleet.nodes["a"].kill()
    await until(lambda: all(play.running_at(n) == {"b"} for n in play.names), "b runs all", within_s=SETTLED_S)
    assert overlaps(play.diary, play.names) == []


@virtually
async def test_worker_that_is_cut_off_runs_nothing_when_another_one_does() -> None:
    play = Play()
    await play.begin()
    play.fleet.nodes["a"].faults.away = True
    await until(lambda: all(play.running_at(n) == {"b"} for n in play.names), "b runs all", within_s=SETTLED_S)
    play.fleet.nodes["a"].faults.away = False
    await asyncio.sleep(30)
    assert {w for n in play.names for w in play.running_at(n)} == {"a", "b"}
    assert overlaps(play.diary, play.names) == []


@virtually
async def test_worker_that_leaves_hands_its_handlers_over() -> None:
    play = Play()
    await play.begin()
    worker = play.start("c")
    await asyncio.sleep(30)
    assert worker.duty.load() > 0
    await worker.leave()
    assert worker.duty.load() == 0
    await until(lambda: all(play.running_at(n) <= {"a", "b"} for n in play.names), "others", within_s=SETTLED_S)
    await play.settled()
    assert overlaps(play.diary, play.names) == []


@pytest.mark.parametrize("seed", range(6))
def test_random_faults_never_have_a_handler_run_twice(seed: int) -> None:
    @virtually
    async def run() -> None:
        rng, play = random.Random(seed), Play()
        await play.begin()
        for _ in range(12):
            name = rng.choice(["a", "b"])
            node = play.fleet.nodes[name]
            if rng.random() < 0.5:
                await node.kill()
                await asyncio.sleep(rng.uniform(0, 5))
                play.start(name)
            else:
                node.faults.away = True
                await asyncio.sleep(rng.uniform(0, 5))
                node.faults.away = False
            await asyncio.sleep(rng.uniform(0, 5))
        await play.settled()
        assert overlaps(play.diary, play.names) == []
        assert len({line.epoch for line in play.diary.lines}) > 3

    run()
