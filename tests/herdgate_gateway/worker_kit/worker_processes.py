"""`herdgate worker` as real processes, with a real table and a real Redis.

    with worker_process(site, "one") as one:
        ... one.port, one.child, one.log()

Rules: each has a free port of 127.0.0.1 and a folder; it is ended by its process id, its child too.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from herdgate_gateway.leases.dynamo import Place
from herdgate_gateway.leases.rows import shard_key
from tests.dynamodb import DynamoServer
from tests.redis_servers import RedisServer
from tests.servers import ROOT, poll

__all__ = ["Site", "WorkerProcess", "worker_process"]

APP = "tests.herdgate_gateway.worker_kit.echo:app"
END_S = 20.0
LEASE_S = "6"
"""Longer than need be: cores are shared."""


@dataclass(frozen=True)
class Site:
    """Where workers meet."""

    dynamodb: DynamoServer
    place: Place
    redis: RedisServer
    folder: Path

    def rows(self) -> list[dict[str, Any]]:
        """All rows, values by name, whatever their type."""
        rows: list[dict[str, Any]] = []
        asked: dict[str, Any] = {"TableName": self.place.table, "ConsistentRead": True}
        while True:
            status, reply = self.dynamodb.ask("Scan", **asked)
            assert status == 200, reply
            rows += ({name: next(iter(value.values())) for name, value in item.items()} for item in reply["Items"])
            if "LastEvaluatedKey" not in reply:
                return rows
            asked["ExclusiveStartKey"] = reply["LastEvaluatedKey"]

    def owned(self, worker: str) -> dict[int, int]:
        """Shards of a worker, with their epochs."""
        mine = [row for row in self.rows() if row.get("sk") == "@" and row["owner"] == worker]
        return {int(row["pk"].rpartition("#")[2]): int(row["epoch"]) for row in mine}

    def state(self, worker: str) -> tuple[str, int]:
        """State and load in its row."""
        (row,) = [row for row in self.rows() if row["sk"] == worker]
        return row["st"], int(row["load"])

    def first_shard(self) -> str:
        """Partition of a shard."""
        return shard_key("default", 0).pk


class WorkerProcess:
    """A running one."""

    def __init__(self, name: str, guardian: "subprocess.Popen[bytes]", log_file: Path) -> None:
        self.name, self.guardian, self._log_file = name, guardian, log_file

    @property
    def child(self) -> int:
        """Process id of the worker itself."""
        pid = self.guardian.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()[0])

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.addr.rpartition(":")[2])

    @property
    def addr(self) -> str:
        """What gateways dial."""
        found = re.search(r" at (ws://127\.0\.0\.1:[0-9]+); room for ", self.log())
        assert found is not None, self.log()
        return found[1]

    def log(self) -> str:
        """What it has said."""
        return self._log_file.read_text()

    def end(self) -> int:
        """Wait for it: the exit code."""
        return self.guardian.wait(END_S)


@contextmanager
def worker_process(site: Site, name: str, *options: str, app: str = APP) -> Iterator[WorkerProcess]:
    """One, as soon as it listens and its app has started."""
    where = ["--table", site.place.table, "--region", "us-east-1", "--endpoint-url", str(site.place.endpoint_url)]
    named = ["--name", name, "--listen", "127.0.0.1:0", "--redis", site.redis.url, "--lease-s", LEASE_S]
    command = [sys.executable, "-m", "herdgate", "worker", app, *where, *named, *options]
    log_file = site.folder / f"{name}-{len(list(site.folder.iterdir()))}.log"
    with log_file.open("wb") as log:
        guardian = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, env=os.environ, process_group=0)
    worker = WorkerProcess(name, guardian, log_file)
    try:
        poll(lambda: guardian.poll() is not None or "startup complete" in worker.log(), "it is up", within_s=40)
        yield worker
    finally:
        _kill(worker)


def _kill(worker: WorkerProcess) -> None:
    if worker.guardian.poll() is None:
        with suppress(IndexError, OSError):
            os.kill(worker.child, signal.SIGKILL)
        worker.guardian.kill()
    worker.guardian.wait(END_S)


def read_news(messages: list[Any]) -> list[Any]:
    """What came over a channel, read."""
    return [json.loads(message["data"]) for message in messages if message["type"] == "message"]
