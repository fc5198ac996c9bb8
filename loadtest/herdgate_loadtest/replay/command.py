"""`herdgate replay TRACE URL`: plays a recorded trace of disconnects against a server.

Exit code: 0 everybody came back, the run is valid and within the bounds; 1 not; 2 nothing was run.
"""

import asyncio
import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from herdgate.core.errors import printable
from herdgate_loadtest.counted import counted
from herdgate_loadtest.engine import CrowdConfig, loopback_sources, parse_clients
from herdgate_loadtest.engine.options import as_typed
from herdgate_loadtest.engine.target import Target
from herdgate_loadtest.errors import ConfigurationError, CrowdError, LoadtestError
from herdgate_loadtest.herd.bounds import missed
from herdgate_loadtest.output_file import check_output
from herdgate_loadtest.replay.player import Result
from herdgate_loadtest.replay.player import replay as play
from herdgate_loadtest.replay.report import write_report
from herdgate_loadtest.replay.scaling import Script, script_of
from herdgate_loadtest.replay.trace import TraceError, read_trace

__all__ = ["replay"]


def replay(
    trace: Annotated[str, typer.Argument(help="JSON lines, as `herdgate serve --trace` writes them.")],
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="ws://HOST:PORT/PATH.")],
    *,
    speed: Annotated[float, typer.Option(help="Play it so many times faster.")] = 1.0,
    population: Annotated[float, typer.Option(help="With so many times the clients.")] = 1.0,
    enter: Annotated[float, typer.Option("--from", help="Enter it at this second; what was before is over.")] = 0.0,
    rate: Annotated[float, typer.Option(help="Admissions per second the fleet may do.")] = 500.0,
    burst: Annotated[float | None, typer.Option(help="Admissions at once. Default: one second of the rate.")] = None,
    ramp: Annotated[float | None, typer.Option(help="Clients per second to begin with. Default: the rate.")] = None,
    behaviour: Annotated[str, typer.Option(help="How clients come back; shares as in obey=9,fixed:15=1.")] = "obey",
    spread: Annotated[float, typer.Option(help="Seconds over which those who are cut off first come back.")] = 0.3,
    deadline: Annotated[float, typer.Option(help="Seconds to come up, and after the last cut.")] = 120.0,
    timeout: Annotated[float, typer.Option(help="Seconds a try may take.")] = 10.0,
    sources: Annotated[int | None, typer.Option(help="Number of loopback source addresses. Default: none.")] = None,
    seed: Annotated[int, typer.Option(help="Of every random choice.")] = 1,
    report: Annotated[str, typer.Option(help="Write an HTML report with plots to this file.")] = "",
    max_recovery_ratio: Annotated[float | None, typer.Option(help="Most t100 of the obedient / ideal.")] = None,
    max_peak: Annotated[float | None, typer.Option(help="Most admissions in the busiest second.")] = None,
    max_failed: Annotated[int | None, typer.Option(help="Most tries with neither admission nor denial.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result record, and nothing else.")] = False,
) -> None:
    """Play a trace of disconnects against a server, and see how its clients come back.

    Exit code: 0 all came back, the run is valid and within the bounds; 1 not; 2 nothing was run.
    """
    ramp = rate if ramp is None else ramp
    burst = max(1.0, rate) if burst is None else burst
    _check_numbers(rate=rate, ramp=ramp, deadline=deadline, burst=burst)
    if report:
        check_output("--report", report)
    script = _script(trace, speed=speed, population=population, enter_s=enter, seed=seed)
    config = _crowd(urls, behaviour, script.clients, sources=sources, spread_s=spread, timeout_s=timeout, seed=seed)
    if not as_json:
        typer.echo(_introduction(script))
    try:
        result = asyncio.run(play(script, config, rate=rate, burst=burst, ramp=ramp, deadline_s=deadline))
    except CrowdError as error:
        typer.echo(f"herdgate: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    most = {"recovery_ratio": max_recovery_ratio, "peak_admitted_per_s": max_peak, "failed": max_failed}
    lines = missed([result.record], {name: bound for name, bound in most.items() if bound is not None})
    if as_json:
        typer.echo(json.dumps(result.as_dict(), allow_nan=False))
    else:
        _conclude(result)
    if report:
        lines += _report(report, trace, urls, result, lines)
    for line in lines:
        typer.echo(f"herdgate: {line}", err=True)
    sys.exit(0 if result.record.valid and math.isfinite(result.record.t100_s) and not lines else 1)


def _check_numbers(*, rate: float, ramp: float, deadline: float, burst: float) -> None:
    for option, value in (("--rate", rate), ("--ramp", ramp), ("--deadline", deadline)):
        if not 0 < value < math.inf:
            raise ConfigurationError(option, value, "write a number, more than 0")
    if not 0 <= burst < math.inf:
        raise ConfigurationError("--burst", burst, "write admissions, 0 or more")


def _script(trace: str, **scale: Any) -> Script:
    """What of a trace is played."""
    script = script_of(read_trace(trace), **scale)
    if script.first_cut_s is None:
        way_out = "enter it earlier, play more of its clients, or name another"
        raise TraceError(f"{printable(trace)}: nobody is cut off, as far as it is played; {way_out}")
    return script


def _crowd(urls: Sequence[str], behaviour: str, clients: int, *, sources: int | None, **settings: Any) -> CrowdConfig:
    """Whom it happens to."""
    shared_out = _shared_out(behaviour, clients)
    try:
        for url in urls:
            Target.of(url)
        dialled_from = loopback_sources(sources) if sources is not None else ()
        return CrowdConfig(urls=tuple(urls), clients=shared_out, sources=dialled_from, **settings)
    except ConfigurationError as error:
        raise LoadtestError(as_typed(error, {"url": "URL", "urls": "URL"})) from None


def _report(file: str, trace: str, urls: Sequence[str], result: Result, missed: Sequence[str]) -> list[str]:
    """Write it; returns what hindered that: the run itself has been told by then."""
    try:
        write_report(file, trace, urls, result, missed)
    except LoadtestError as error:
        return [str(error)]
    return []


def _shared_out(behaviour: str, clients: int) -> Mapping[str, int]:
    """The clients by behaviour; whole numbers that add up."""
    try:
        shares = parse_clients(behaviour if "=" in behaviour else f"{behaviour}=1")
    except ConfigurationError as error:
        raise ConfigurationError("--behaviour", behaviour, error.way_out) from None
    total = sum(shares.values())
    if not total:
        raise ConfigurationError("--behaviour", behaviour, "write shares, as in obey=9,fixed:15=1")
    counts, given, before = {}, 0, 0
    for name, share in shares.items():
        before += share
        counts[name] = round(clients * before / total) - given
        given += counts[name]
    return counts


def _introduction(script: Script) -> str:
    cuts = sum(step.act in ("close", "reset") for step in script.steps)
    came = sum(step.act == "come" for step in script.steps)
    length_s = script.steps[-1].at_s if script.steps else 0.0
    clients, there = counted(script.clients, "client"), f"{len(script.present):,} of them there at the start"
    return f"{clients}, {there}; {counted(came, 'newcomer')} and {counted(cuts, 'cut')} in {length_s:.1f} s"


def _conclude(result: Result) -> None:
    record = result.record
    back = f"all back {record.t100_s:.1f} s after the first cut" if math.isfinite(record.t100_s) else "not all are back"
    typer.echo(f"{back} (ideal {record.ideal_s:.1f} s), {record.attempts_per_client:.2f} tries each")
    typer.echo(f"{record.denied:,} denied, {record.failed:,} failed")
    peak = f"busiest second, beyond the burst of {record.burst:g}: {record.peak_admitted_per_s:g} admitted"
    typer.echo(f"{peak}, the rate is {record.rate:g}")
    for reason in record.reasons:
        typer.echo(f"not a valid run: {reason}")
