"""Real workers that dial out, in processes with guardians, and what their handlers wrote."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from herdgate_loadtest.servers.emulator import REGION, aws_environment
from tests.dynamodb import DynamoServer
from tests.redis_servers import redis_server
from tests.servers import ROOT, poll

__all__ = ["Site", "WorkerProcess", "Written", "overlaps", "site"]

MODULE = "tests.herdgate_gateway.worker_kit.dialled_out"
END_S = 20.0


@dataclass(frozen=True)
class Written:
    """A line of a handler's."""

    at: float
    what: str
    seq: int
    pid: int
    id: str
    epoch: int


def overlaps(lines: Sequence[Written]) -> list[str]:
    """Where two ownerships ran one connection at the same time, from the first line of each to its last."""
    spans: dict[tuple[str, int], list[Written]] = {}
    for line in lines:
        spans.setdefault((line.id, line.epoch), []).append(line)
    found = []
    for before, after in pairwise(sorted(spans)):
        last, first = max(line.at for line in spans[before]), min(line.at for line in spans[after])
        if before[0] == after[0] and first < last:
            found.append(f"connection {before[0]}: epoch {before[1]} until {last}, epoch {after[1]} since {first}")
    return found


class Site:
    """A table, a Redis, and the file that handlers write to."""

    def __init__(self, endpoint: str, redis: str, table: str, folder: Path) -> None:
        self.redis, self.folder = redis, folder
        self.file = folder / "lines"
        self.where = ["--table", table, "--region", REGION, "--endpoint-url", endpoint, "--redis", redis]

    def start(self, *names: str, attrs: Mapping[str, Any] | None = None) -> None:
        """Have these run."""
        told = json.dumps({"file": str(self.file), **(attrs or {})})
        self.ask("start", *names, "--attrs", told)

    def ask(self, *words: str) -> str:
        """`herdgate connections`."""
        where = self.where[:-2] if words[0] in {"list", "show"} else self.where
        command = [sys.executable, "-m", "herdgate", "connections", *words, *where]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=aws_environment()).stdout

    def lines(self) -> list[Written]:
        """All that handlers have written so far; the last line may be on its way."""
        if not self.file.exists():
            return []
        whole, _, _ = self.file.read_text().rpartition("\n")
        return [Written(**json.loads(line)) for line in whole.splitlines()]

    def running(self, within_s: float = 1.0) -> dict[str, int]:
        """The process of each connection that has written a moment ago."""
        lines = self.lines()
        newest = max((line.at for line in lines), default=0.0)
        return {line.id: line.pid for line in lines if line.at > newest - within_s}


class WorkerProcess:
    """`herdgate worker --dial`, started.

    Attributes:
        log_file: all that it says.
    """

    def __init__(self, site: Site, name: str, handler: str = "counts", lease_s: float = 3.0) -> None:
        self.log_file = site.folder / f"{name}.log"
        options = ["--name", name, "--lease-s", str(lease_s), *site.where]
        with self.log_file.open("ab") as log:
            self._guardian = subprocess.Popen(
                [sys.executable, "-m", "herdgate", "worker", "--dial", f"{MODULE}:{handler}", *options],
                cwd=ROOT,
                stdout=log,
                stderr=log,
                env=aws_environment(),
                process_group=0,
            )

    @property
    def pid(self) -> int:
        """Of the worker, once there is one."""
        assert self.begins(), f"{self.log_file.name} has ended:\n{self.log()}"
        return self._children()[0]

    def begins(self) -> bool:
        """Wait until there is a worker; False: it has ended by itself instead."""
        poll(lambda: self.has_ended or bool(self._children()), f"{self.log_file.name}: a worker", within_s=2 * END_S)
        return not self.has_ended

    def _children(self) -> list[int]:
        guardian = self._guardian.pid
        with suppress(OSError):
            return [int(pid) for pid in Path(f"/proc/{guardian}/task/{guardian}/children").read_text("ascii").split()]
        return []

    @property
    def has_ended(self) -> bool:
        """True if it ended by itself, as it does where the table does not answer at its start."""
        return self._guardian.poll() is not None

    def send(self, number: signal.Signals) -> None:
        """To the worker, not its guardian."""
        os.kill(self.pid, number)

    def crash(self) -> None:
        """Kill the worker; its guardian sees it, and ends."""
        self.send(signal.SIGKILL)
        self._guardian.wait(END_S)

    def leave(self) -> int:
        """End it in good order; its exit code."""
        self._guardian.terminate()
        return self._guardian.wait(2 * END_S)

    def end(self) -> None:
        """At once, if it runs."""
        if self._guardian.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._guardian.kill()
            self._guardian.wait(END_S)

    def log(self) -> str:
        """All that it has said."""
        return self.log_file.read_text()


@contextmanager
def site(dynamodb: DynamoServer, folder: Path, table: str) -> Iterator[Site]:
    """A place of its own."""
    with redis_server() as redis:
        dynamodb.make_table(table)
        yield Site(dynamodb.url, redis.url, table, folder)
