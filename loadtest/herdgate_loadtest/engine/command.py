"""`python -m herdgate_loadtest.engine`: one crowd, cut once, as a process of its own.

Rules: standard output is JSON lines. The last one is the record; with `--json-lines` events come before it, each an
object with `event`: `preflight`, `attempt` (one per try), `snapshot` (one a second), `cut`, `record`. Messages go to
standard error, one line each. Exit code: 0 everybody is back and the run is valid, 1 not so, 2 it could not start.
"""

import argparse
import asyncio
import contextlib
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, get_args

from herdgate_loadtest.engine.behaviour import parse_clients
from herdgate_loadtest.engine.config import CrowdConfig, loopback_sources
from herdgate_loadtest.engine.crowd import Crowd, Cut
from herdgate_loadtest.engine.preflight import read_limits
from herdgate_loadtest.errors import ConfigurationError, CrowdError, HerdgateError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from herdgate_loadtest.engine.record import Record
    from herdgate_loadtest.engine.scheduler import Attempt

__all__ = ["main"]

_SNAPSHOT_S = 1.0
_BACK, _NOT_BACK, _NOT_STARTED, _INTERRUPTED = 0, 1, 2, 130


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run a crowd as the arguments say; returns the exit code."""
    options = _parser().parse_args(argv)
    try:
        return asyncio.run(_run(options))  # uvloop would save nothing: sockets are not the loop's business here
    except HerdgateError as error:
        sys.stderr.write(f"error: {error}\n")
        return _NOT_BACK if isinstance(error, CrowdError) else _NOT_STARTED
    except (KeyboardInterrupt, asyncio.CancelledError):
        return _INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m herdgate_loadtest.engine", description="One crowd, cut off once.")
    add = parser.add_argument
    add("--url", action="append", required=True, help="ws://HOST:PORT/PATH; repeat it for several gateways")
    add("--clients", default="1000", help="a number (they obey), or as in obey=900,hint=50,fixed:15=50")
    add("--sources", default="", help="number of loopback source addresses, or addresses with commas")
    add("--origin", help="Origin header: makes the clients browsers")
    add("--subprotocol", help="subprotocol to offer")
    add("--header", action="append", default=[], help="one more header, as in 'X-User: {n}'; may be repeated")
    add("--rate", type=float, default=500.0, help="admissions per second the fleet may do")
    add("--burst", type=float, help="admissions at once (default: one second of the rate)")
    add("--ramp", type=float, help="clients per second to begin with (default: the rate)")
    add("--hold", type=float, default=1.0, help="seconds between the last admission and the cut")
    add("--cut", choices=get_args(Cut), default="reset", help="who cuts, and how")
    add("--expect", type=int, help="with --cut observe: clients the server will cut off (default: all)")
    add("--spread", type=float, default=0.3, help="seconds over which clients first come back")
    add("--timeout", type=float, default=10.0, help="seconds a try may take")
    add("--deadline", type=float, default=120.0, help="seconds to come up, on top of the ramp, and to recover")
    add("--seed", type=int, default=1, help="of every random choice")
    add("--json-lines", action="store_true", help="print every event")
    return parser


def _config(options: argparse.Namespace) -> CrowdConfig:
    if not options.rate > 0:
        raise ConfigurationError("rate", options.rate, "write admissions per second, more than 0")
    if options.ramp is not None and not options.ramp > 0:
        raise ConfigurationError("ramp", options.ramp, "write clients per second, more than 0")
    return CrowdConfig(
        urls=tuple(options.url),
        clients=parse_clients(options.clients),
        sources=_sources(options.sources),
        origin=options.origin,
        subprotocol=options.subprotocol,
        headers=tuple(_header(text) for text in options.header),
        spread_s=options.spread,
        timeout_s=options.timeout,
        seed=options.seed,
    )


def _sources(text: str) -> tuple[str, ...]:
    if text.isdecimal():
        return loopback_sources(int(text))
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise ConfigurationError("header", text, "write 'Name: value'")
    return name.strip(), value.strip()


async def _run(options: argparse.Namespace) -> int:
    config = _config(options)
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
