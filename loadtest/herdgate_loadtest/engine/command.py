"""`python -m herdgate_loadtest.engine`: one crowd, cut once, as a process of its own.

Rules: standard output is JSON lines. The last one is the record; with `--json-lines` events come before it, each an
object with `event`: `preflight`, `attempt` (one per try), `snapshot` (one a second), `cut`, `record`. Messages go to
standard error, one line each. Exit code: 0 everybody is back and the run is valid, 1 not so, 2 nothing was run,
130 interrupted.
"""

import asyncio
import contextlib
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from herdgate_loadtest.engine.crowd import Crowd
from herdgate_loadtest.engine.options import as_typed, config_of, parse
from herdgate_loadtest.engine.preflight import read_limits
from herdgate_loadtest.errors import ConfigurationError, CrowdError, HerdgateError

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Sequence

    from herdgate_loadtest.engine.record import Record
    from herdgate_loadtest.engine.scheduler import Attempt

__all__ = ["main"]

_SNAPSHOT_S = 1.0
_BACK, _NOT_BACK, _NOT_STARTED, _INTERRUPTED = 0, 1, 2, 130


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run a crowd as the arguments say; returns the exit code."""
    try:
        options = parse(argv)
        return asyncio.run(_run(options))  # uvloop would save nothing: sockets are not the loop's business here
    except ConfigurationError as error:
        sys.stderr.write(f"error: {as_typed(error)}\n")
        return _NOT_STARTED
    except HerdgateError as error:
        sys.stderr.write(f"error: {error}\n")
        return _NOT_BACK if isinstance(error, CrowdError) else _NOT_STARTED
    except (KeyboardInterrupt, asyncio.CancelledError):
        return _INTERRUPTED


async def _run(options: "argparse.Namespace") -> int:
    config = config_of(options)
    events = _Events(every=options.json_lines)
    async with Crowd(config, events.attempt if options.json_lines else None) as crowd, events.snapshots_of(crowd):
        events.write("preflight", **asdict(read_limits()))
        ramp = options.ramp or options.rate
        await crowd.bring_up(rate=ramp, deadline_s=config.total / ramp + options.deadline)
        for warning in crowd.warnings:
            sys.stderr.write(f"warning: {warning}\n")
        await crowd.hold(options.hold)
        crowd.cut(options.cut)
        events.write("cut", how=options.cut)
        back = await crowd.recover(deadline_s=options.deadline, expected=options.expect)
        await crowd.close()
    record = crowd.record(rate=options.rate, burst=max(1.0, options.rate) if options.burst is None else options.burst)
    events.write("record", **_summary(crowd, record))
    await asyncio.sleep(0)  # where a cancelled run ends
    return _BACK if back and record.valid else _NOT_BACK


def _summary(crowd: Crowd, record: "Record") -> dict[str, Any]:
    health = crowd.health
    return record.as_dict() | {
        "answers": crowd.answers(),
        "generator": {
            "lag_p99_ms": round(health.lag_p99_s * 1e3, 1),
            "dial_lag_p95_ms": round(health.dial_lag_p95_s * 1e3, 1),
        },
    }


class _Events:
    """Writes events; when nobody reads them any more, it ends the run."""

    def __init__(self, *, every: bool) -> None:
        self._every = every
        self._run = asyncio.current_task()

    def write(self, event: str, **fields: Any) -> None:
        if not self._every and event != "record":
            return
        try:
            sys.stdout.write(json.dumps({"event": event, **fields}, allow_nan=False) + "\n")
            if event != "attempt":  # those are many; the next snapshot takes them along
                sys.stdout.flush()
        except BrokenPipeError:
            self._end()
        except OSError as error:
            sys.stderr.write(f"error: standard output: {error.strerror}\n")
            self._end()

    def _end(self) -> None:
        if self._run is not None:
            self._run.cancel()

    def attempt(self, attempt: "Attempt") -> None:
        wait_s = None if attempt.wait_s is None else round(attempt.wait_s, 6)
        self.write("attempt", **attempt._replace(latency_s=round(attempt.latency_s, 6), wait_s=wait_s)._asdict())

    @contextlib.asynccontextmanager
    async def snapshots_of(self, crowd: Crowd) -> "AsyncIterator[None]":
        task = asyncio.create_task(self._show(crowd))
        try:
            yield
        finally:
            task.cancel()

    async def _show(self, crowd: Crowd) -> None:
        while True:
            await asyncio.sleep(_SNAPSHOT_S)
            self.write("snapshot", **asdict(crowd.snapshot()))
