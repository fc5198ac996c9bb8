"""Handshakes at a steady pace from a process of its own, which ends with this one.

    with Flood() as flood:
        flood.start(port, 2.0, pace=4_000)
        ... measure something meanwhile ...
        flood.finish()          -> what became of them

Run as `python -m herdgate_loadtest.bench.sides.flood`, it reads a job a line and writes a tally a line. It runs when
nobody else wants to (sched(7)): it stands for other machines, and must not take from the server or the probe what is
theirs. Whether it kept its pace nevertheless is said in the tally.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from types import TracebackType
from typing import Self

from herdgate_loadtest.bench.sides.visits import Tally, Visits
from herdgate_loadtest.errors import CrowdError

__all__ = ["Flood", "main"]

_END_S = 20.0


class Flood:
    """A generator that waits for work."""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "herdgate_loadtest.bench.sides.flood"]
        self._process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._process:
            self._process.terminate()
            try:
                self._process.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def start(self, port: int, seconds: float, *, pace: float) -> None:
        """Visit a port of 127.0.0.1, so many times a second.

        Raises:
            CrowdError: the generator has ended.
        """
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps({"port": port, "seconds": seconds, "pace": pace}) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise CrowdError("the generator of the flood has ended: run it again") from error

    def finish(self) -> Tally:
        """Wait until the time is up.

        Raises:
            CrowdError: it has ended.
        """
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise CrowdError("the generator of the flood has ended: run it again")
        told = json.loads(line)
        return Tally(**told | {"wrong": Counter(told["wrong"])})


def main() -> None:
    """Work until there are no more jobs."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    visits = Visits("http", with_ticket=True)
    for line in sys.stdin:
        job = json.loads(line)
        tally = visits.run(job["port"], job["seconds"], pace=job["pace"])
        sys.stdout.write(json.dumps(asdict(tally)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
