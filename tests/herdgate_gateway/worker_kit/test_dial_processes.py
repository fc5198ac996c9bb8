"""`herdgate worker --dial`: real processes, a real table, a real Redis, and whatever happens to them."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest

from herdgate_loadtest.bench.leases.holder import boot_time
from herdgate_loadtest.servers.emulator import aws_environment
from tests.dynamodb import DynamoServer, dynamodb
from tests.herdgate_gateway.worker_kit.dialling_processes import MODULE, Site, WorkerProcess, overlaps, site
from tests.servers import ROOT, poll

__all__ = ["dynamodb"]

pytestmark = pytest.mark.xdist_group("dialling")

Start = Callable[..., WorkerProcess]
NAMES = [f"c{number}" for number in range(12)]


@pytest.fixture
def place(dynamodb: DynamoServer, tmp_path: Path) -> Iterator[Site]:
    with site(dynamodb, tmp_path, f"dial-{uuid4()}") as place:
        yield place


@pytest.fixture
def start(place: Site) -> Iterator[Start]:
    started: list[WorkerProcess] = []

    def start(name: str, handler: str = "counts", lease_s: float = 3.0) -> WorkerProcess:
        started.append(WorkerProcess(place, name, handler, lease_s))
        return started[-1]

    yield start
    for worker in started:
        worker.end()


def all_run(place: Site, since: float = 0.0) -> Callable[[], bool]:
    """Each has written twice since then."""
    return lambda: all(
        sum(line.id == name and line.at > since and line.what == "on" for line in place.lines()) >= 2 for name in NAMES
    )


def test_each_connection_runs_in_one_worker_and_goes_on_in_the_next(place: Site, start: Start) -> None:
    place.start(*NAMES)
    one = start("one")
    poll(all_run(place), "all run", within_s=40)
    other = start("other")
    poll(lambda: len(set(place.running().values())) == 2, "both run some", within_s=40)
    assert one.leave() == 0
    poll(all_run(place, boot_time()), "all run in the other one", within_s=20)
    assert set(place.running().values()) == {other.pid}
    assert overlaps(place.lines()) == []
    runs: dict[str, list[int]] = {}
    for line in place.lines():
        if line.what == "begin":
            runs.setdefault(line.id, []).append(line.seq)
    assert all(seqs == sorted(seqs) for seqs in runs.values())
    assert all(seqs[0] == 0 and seqs[-1] > 0 for seqs in runs.values())


def test_wants_are_followed_at_once(place: Site, start: Start) -> None:
    start("one")
    place.start("c0")
    poll(lambda: "c0" in place.running(), "it runs", within_s=40)
    place.start("c1", attrs={"n": 1})
    asked = boot_time()
    poll(lambda: "c1" in place.running(), "the new one runs", within_s=5)
    assert min(line.at for line in place.lines() if line.id == "c1") < asked + 1
    place.ask("stop", "c0")
    stopped = boot_time()
    poll(lambda: set(place.running()) == {"c1"}, "one has ended", within_s=5)
    assert max(line.at for line in place.lines() if line.id == "c0") < stopped + 1
    place.start("c1", attrs={"n": 2})
    poll(lambda: sum(line.what == "begin" for line in place.lines() if line.id == "c1") == 2, "anew", within_s=5)


def test_worker_that_was_stopped_past_its_right_runs_no_line_afterwards(place: Site, start: Start) -> None:
    place.start(*NAMES)
    one = start("one")
    poll(all_run(place), "all run", within_s=40)
    pid = one.pid
    other = start("other")
    poll(lambda: len(set(place.running().values())) == 2, "both run some", within_s=40)
    one.send(signal.SIGSTOP)
    stopped = boot_time()
    poll(lambda: set(place.running().values()) == {other.pid}, "the other one runs all", within_s=30)
    poll(all_run(place, boot_time()), "all go on", within_s=20)
    one.send(signal.SIGCONT)
    resumed = boot_time()
    poll(lambda: any(line.pid == pid and line.at > resumed for line in place.lines()), "it has a life", within_s=60)
    lines = place.lines()
    assert overlaps(lines) == []
    known = {(line.id, line.epoch) for line in lines if line.pid == pid and line.at < stopped}
    assert not [line for line in lines if line.at > resumed and (line.id, line.epoch) in known]


def test_what_a_handler_keeps_while_the_worker_stops_is_there(place: Site, start: Start) -> None:
    place.start(*NAMES)
    one = start("one", "cleans_up")
    poll(lambda: {line.id for line in place.lines()} == set(NAMES), "all run", within_s=40)
    other = start("other", "cleans_up")
    poll(lambda: len({line.pid for line in place.lines()}) == 2, "both run some", within_s=40)
    assert one.leave() == 0
    assert other.leave() == 0
    told = json.loads(place.ask("list", "--json"))
    assert {row["last_seq"] for row in told} <= {None, 1, 2, 3}
    assert sum(row["last_seq"] is not None for row in told) == len(NAMES), one.log() + other.log()


def test_handler_that_blocks_the_loop_loses_its_connections(place: Site, start: Start) -> None:
    place.start("c0", attrs={"block_s": 8})
    for name in ("one", "other"):
        start(name, "blocks")
    poll(lambda: len({line.pid for line in place.lines() if line.id == "c0"}) == 2, "both ran it", within_s=60)
    assert overlaps(place.lines()) == []


def test_handler_that_raises_is_tried_again_and_told_once(place: Site, start: Start) -> None:
    place.start("c0")
    one = start("one", "raises")
    poll(lambda: len(place.lines()) >= 3, "it is tried again", within_s=60)
    assert one.log().count("the handler of c0 failed: OSError('nobody there')") == 1


@pytest.mark.parametrize(
    ("handler", "told"),
    [
        ("no_such:handler", "--dial: cannot import no_such: No module named 'no_such'"),
        (f"{MODULE}:nothing", f"--dial: module {MODULE} has no nothing"),
        (f"{MODULE}:boot_time", "it has to be an async def"),
    ],
)
def test_wrong_handler_is_one_line(place: Site, handler: str, told: str) -> None:
    command = [sys.executable, "-m", "herdgate", "worker", "--dial", handler, "--name", "w", *place.where]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60, env=aws_environment()
    )
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


class Chaos:
    """Kills and pauses of random workers, one after the other, pauses side by side."""

    def __init__(self, start: Start, names: list[str], lease_s: float, seed: int) -> None:
        self._rng, self._lease_s = random.Random(seed), lease_s
        self._start = start
        self.workers = {name: self._make(name) for name in names}
        self._pauses: list[threading.Timer] = []
        self._paused: dict[str, float] = {}

    def strike(self) -> None:
        """One that is not paused; one that has ended by itself is begun again first."""
        name = self._rng.choice(sorted(self.workers))
        while self._paused.get(name, 0.0) > time.monotonic():
            time.sleep(0.1)
        while not self.workers[name].begins():
            self.workers[name] = self._make(name)
        if self._rng.random() < 0.5:
            self.workers[name].crash()
            self.workers[name] = self._make(name)
        else:
            self._pause(name, self._rng.uniform(0.2, 3 * self._lease_s))
        time.sleep(self._rng.uniform(0.1, self._lease_s))

    def _make(self, name: str) -> WorkerProcess:
        return self._start(name, "counts", self._lease_s)

    def settle(self) -> None:
        """All go on, and run."""
        for pause in self._pauses:
            pause.join()
        for name in self.workers:
            while not self.workers[name].begins():
                self.workers[name] = self._make(name)

    def _pause(self, name: str, seconds: float) -> None:
        pid = self.workers[name].pid
        self.workers[name].send(signal.SIGSTOP)
        self._paused[name] = time.monotonic() + seconds + 0.2
        self._pauses.append(threading.Timer(seconds, _go_on, [pid]))
        self._pauses[-1].start()


def _go_on(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def play(place: Site, start: Start, strikes: int, lease_s: float, seed: int) -> None:
    place.start(*NAMES)
    chaos = Chaos(start, ["one", "two", "three"], lease_s, seed)
    poll(all_run(place), "all run", within_s=60)
    for _ in range(strikes):
        chaos.strike()
    chaos.settle()
    poll(all_run(place, boot_time()), "all run in the end", within_s=90)
    lines = place.lines()
    assert overlaps(lines) == [], f"seed {seed}"
    kept: dict[str, tuple[int, int]] = {}
    for line in lines:
        if line.what == "kept":
            kept[line.id] = max(kept.get(line.id, (0, 0)), (line.epoch, line.seq))
        elif line.what == "begin" and line.id in kept and line.epoch > kept[line.id][0]:
            assert line.seq >= kept[line.id][1], f"seed {seed}: {line} went back"
    owners = len({(line.id, line.epoch) for line in lines})
    print(f"{strikes} strikes, {len(lines)} lines of {owners} ownerships, none at the same time as another")
    assert owners > len(NAMES) + strikes / 4


@pytest.mark.timeout(300)
def test_twenty_random_kills_and_pauses(place: Site, start: Start) -> None:
    play(place, start, 20, 3.0, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_two_hundred_random_kills_and_pauses(place: Site, start: Start) -> None:
    play(place, start, 200, 3.0, seed=int(time.time()))
