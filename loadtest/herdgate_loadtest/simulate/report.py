"""What a simulation came to, for people and for programs."""

import json
import math
from collections.abc import Iterator, Sequence

from herdgate_loadtest.counted import counted
from herdgate_loadtest.engine import BehaviourRecord, Record
from herdgate_loadtest.simulate.outcome import Outcome
from herdgate_loadtest.simulate.scenario import Scenario

__all__ = ["HEAD", "as_json", "as_text", "beyond", "row_of"]

HEAD = (
    "strategy",
    "back",
    "t95 s",
    "t100 s",
    "of ideal",
    "tries",
    "busiest s",
    "denied",
    "failed",
    "wait p50 s",
    "longest s",
)
_KINDS = ("behaviour", "clients", "back", "tries", "wait p50 s", "longest s")


def as_json(outcomes: Sequence[Outcome], *, compared: bool) -> str:
    """The result record; compared: a list of them, each with its `strategy`."""
    if not compared:
        return outcomes[0].record.to_json()
    records = [{"strategy": outcome.strategy, **outcome.record.as_dict()} for outcome in outcomes]
    return json.dumps(records, allow_nan=False)


def as_text(scenario: Scenario, outcomes: Sequence[Outcome], *, compared: bool) -> str:
    """What was played, and what came of it."""
    what = f"{counted(scenario.clients, 'client')}, {scenario.rate:,g} a second, burst {scenario.burst:,g}"
    lines = [f"{what}: ideal {outcomes[0].record.ideal_s:.1f} s, seed {scenario.seed}"]
    if compared:
        lines += _aligned([HEAD, *map(row_of, outcomes)])
    else:
        lines += _lines(outcomes[0].record)
    return "\n".join(lines)


def beyond(record: Record, max_ratio: float | None, max_tries: float | None) -> Iterator[str]:
    """Which bounds a record is beyond."""
    ratio, tries = record.recovery_ratio, record.attempts_per_client
    if max_ratio is not None and not (ratio is not None and ratio <= max_ratio):
        yield f"recovery_ratio {_ratio(ratio)} is beyond {max_ratio:g}"
    if max_tries is not None and tries > max_tries:
        yield f"attempts_per_client {tries:.3f} is beyond {max_tries:g}"


def row_of(outcome: Outcome) -> tuple[str, ...]:
    """A line of the table, as `HEAD` says; of ideal: time until all are back, whoever they are, over the ideal time."""
    record = outcome.record
    kinds = record.behaviours.values()
    middle = "-" if len(kinds) != 1 else _seconds(next(iter(kinds)).wait_p50_s)
    return (
        outcome.strategy or "as the scenario says",
        f"{sum(kind.back for kind in kinds):,}",
        _seconds(record.t95_s),
        _seconds(record.t100_s),
        _ratio(record.t100_s / record.ideal_s if record.ideal_s else None),
        f"{record.attempts_per_client:.2f}",
        f"{record.peak_admitted_per_s:,g}",
        f"{record.denied:,}",
        f"{record.failed:,}",
        middle,
        _seconds(max(kind.wait_max_s for kind in kinds)),
    )


def _lines(record: Record) -> Iterator[str]:
    ratio = _ratio(record.recovery_ratio)
    yield f"95 % back {_after(record.t95_s)}, all {_after(record.t100_s)}, recovery ratio {ratio}"
    yield f"busiest second, beyond the burst in the first: {record.peak_admitted_per_s:,g} admissions"
    tries = f"{record.attempts_per_client:.2f} tries each"
    yield f"{tries}: {record.denied:,} were told when to come, {record.failed:,} failed"
    yield from _aligned([_KINDS, *(_kind(name, kind) for name, kind in record.behaviours.items())])


def _kind(name: str, kind: BehaviourRecord) -> tuple[str, ...]:
    tries = f"{kind.attempts_per_client:.2f}"
    return (name, f"{kind.clients:,}", f"{kind.back:,}", tries, _seconds(kind.wait_p50_s), _seconds(kind.wait_max_s))


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        cells = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
        yield "  ".join((first.ljust(widths[0]), *cells))


def _after(value: float) -> str:
    return f"after {value:.1f} s" if math.isfinite(value) else "never"


def _seconds(value: float) -> str:
    return f"{value:.1f}" if math.isfinite(value) else "never"


def _ratio(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if math.isfinite(value) else "infinite"
