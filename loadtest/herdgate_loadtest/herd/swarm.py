"""One process of a herd: a crowd of the engine that does as it is ordered, `python -m herdgate_loadtest.herd.swarm`.

Orders come as JSON lines on standard input, and their end means to leave; events go as JSON lines to standard output.

| order | does | then tells |
|---|---|---|
| `up` | makes the crowd and connects it, from the moment `at` on | `up` |
| `cut` | cuts it off at `at`, or expects the server to | `cut`: when it began, and how long that took |
| `tell` | nothing | `told`: all that was recorded since the cut |
| `leave` | everybody leaves | `left` |

Beside these: `ready`, which is the first one, `attempts` and `messages` (ten times a second, all that ended meanwhile),
`snapshot` (four times a second), and `error` with an exit code, which is the last one.

Rules: moments are CLOCK_MONOTONIC of this machine. A reader that is slow never blocks the crowd: a thread writes.
"""

import asyncio
import contextlib
import json
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Self

from herdgate_loadtest.engine import Attempt, Crowd, CrowdConfig
from herdgate_loadtest.errors import CrowdError, HerdgateError
from herdgate_loadtest.herd.clocks import boot_id
from herdgate_loadtest.herd.talk import Talk

__all__ = ["BUCKET_S", "main"]

BUCKET_S = 0.5
"""Width of the buckets in which answers are counted, seconds."""

_TELL_S = 0.1
_SNAPSHOT_S = 0.25
_LONGEST_ORDER = 1 << 20
_NOT_BACK, _NOT_STARTED = 1, 2


def main() -> int:
    """Do as ordered until told to leave; returns the exit code."""
    with _Writer() as writer:
        try:
            asyncio.run(_run(writer))
        except HerdgateError as error:
            code = _NOT_BACK if isinstance(error, CrowdError) else _NOT_STARTED
            writer.write("error", message=str(error), code=code)
            return code
        except (KeyboardInterrupt, asyncio.CancelledError):
            return 130
    return 0


async def _run(writer: "_Writer") -> None:
    swarm = _Swarm(writer)
    writer.write("ready", boot_id=boot_id())
    orders: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    tasks = [asyncio.create_task(task) for task in (_read(orders), swarm.obey_all(orders), swarm.go_on_telling())]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await swarm.leave()
    writer.write("left")


async def _read(orders: "asyncio.Queue[dict[str, Any]]") -> None:
    """Take orders until told to leave, whatever is being done."""
    reader = asyncio.StreamReader(limit=_LONGEST_ORDER)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while (line := await reader.readline()) and (order := json.loads(line))["order"] != "leave":
        orders.put_nowait(order)


class _Swarm:
    """A crowd, and what it has done since it was last told."""

    def __init__(self, writer: "_Writer") -> None:
        self._writer = writer
        self._crowd: Crowd | None = None
        self._talk: Talk | None = None
        self._talking: asyncio.Task[None] | None = None
        self._attempts: list[tuple[object, ...]] = []
        self._messages: list[tuple[float, str]] = []
        self._answers: Counter[tuple[str, int]] = Counter()
        self._began, self._cpu_began = time.monotonic(), time.process_time()

    async def obey_all(self, orders: "asyncio.Queue[dict[str, Any]]") -> None:
        """Do one after the other, until cancelled."""
        while True:
            await self._obey(**await orders.get())

    async def _obey(self, order: str, **details: Any) -> None:
        if order == "up":
            await self._come_up(**details)
        elif order == "cut":
            await self._cut(**details)
        elif order == "tell":
            self._tell()

    async def leave(self) -> None:
        """Everybody leaves."""
        if self._talking is not None:
            self._talking.cancel()
        if self._crowd is not None:
            await self._crowd.close()
        self._flush()

    async def go_on_telling(self) -> None:
        """Tell what has happened, until cancelled."""
        snapshot_due = 0.0
        while True:
            await asyncio.sleep(_TELL_S)
            self._flush()
            if self._crowd is not None and time.monotonic() >= snapshot_due:
                snapshot_due = time.monotonic() + _SNAPSHOT_S
                with contextlib.suppress(CrowdError):  # it is not up yet
                    is_back = self._crowd.is_back(0)
                    self._writer.write("snapshot", is_back=is_back, **asdict(self._crowd.snapshot()))

    async def _come_up(
        self, at: float, config: Mapping[str, Any], ramp: float | None, deadline_s: float, messages: float
    ) -> None:
        settings = CrowdConfig(**{**config, "headers": tuple(map(tuple, config["headers"]))})
        talk = Talk(messages, settings.timeout_s, self._message) if messages else None
        crowd = Crowd(settings, self._attempt, talk.heard if talk else None)
        await _until(at)
        self._crowd = crowd
        await crowd.bring_up(rate=ramp, deadline_s=deadline_s)
        if talk is not None:
            self._talk, self._talking = talk, asyncio.create_task(talk.go_on(crowd))
        self._writer.write("up", warnings=crowd.warnings)

    async def _cut(self, at: float, how: Any) -> None:
        crowd = self._crowd
        assert crowd is not None
        await _until(at)
        self._flush()
        self._answers.clear()
        self._cpu_began = time.process_time()
        self._began = crowd.cut(how)
        if self._talk is not None:
            self._talk.forget()
        self._writer.write("cut", began=self._began, took_s=time.monotonic() - self._began)

    def _tell(self) -> None:
        crowd = self._crowd
        assert crowd is not None
        self._flush()
        health, elapsed_s = crowd.health, time.monotonic() - self._began
        self._writer.write(
            "told",
            recorded=crowd.recorded().as_dict(),
            answers=crowd.answers(),
            series=[[outcome, bucket, times] for (outcome, bucket), times in self._answers.items()],
            lag_p99_ms=round(health.lag_p99_s * 1e3, 1),
            dial_lag_p95_ms=round(health.dial_lag_p95_s * 1e3, 1),
            cpu_share=round((time.process_time() - self._cpu_began) / max(elapsed_s, 1e-3), 3),
        )

    def _attempt(self, attempt: Attempt) -> None:
        _, behaviour, outcome, answer, latency_s, wait_s = attempt
        self._attempts.append((behaviour, outcome, answer, round(latency_s, 6), wait_s))
        self._answers[outcome, int((time.monotonic() - self._began) / BUCKET_S)] += 1

    def _message(self, latency_s: float, why: str) -> None:
        self._messages.append((round(latency_s, 6), why))

    def _flush(self) -> None:
        if self._attempts:
            self._writer.write("attempts", entries=self._attempts)
            self._attempts = []
        if self._messages:
            self._writer.write("messages", entries=self._messages)
            self._messages = []


async def _until(at: float) -> None:
    """Wait for a moment, to the millisecond that a timer of the loop is good for."""
    while (left_s := at - time.monotonic()) > 0:  # noqa: ASYNC110 - uvloop and asyncio may both wake too early
        await asyncio.sleep(left_s)


class _Writer:
    """Writes events in a thread of its own."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.put(None)
        self._thread.join()

    def write(self, event: str, **fields: Any) -> None:
        """Write one, some time later."""
        self._lines.put(json.dumps({"event": event, **fields}, allow_nan=False) + "\n")

    def _write_all(self) -> None:
        with contextlib.suppress(BrokenPipeError):  # nobody reads: standard input ends as well
            while (line := self._lines.get()) is not None:
                sys.stdout.write(line)
                sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
