"""The HTML report of a herd: what came of it, and plots of every round. One file that loads nothing."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from herdgate_loadtest.chart import Line, chart
from herdgate_loadtest.counted import counted
from herdgate_loadtest.engine import Record
from herdgate_loadtest.herd.conductor import Conductor
from herdgate_loadtest.herd.rounds import Round
from herdgate_loadtest.herd.swarm import BUCKET_S
from herdgate_loadtest.output_file import write_output

__all__ = ["back_chart", "page", "per_second_chart", "table", "write_report"]

_STYLE = """body{font:15px sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .8em .2em 0;text-align:left;vertical-align:top}
.bad{color:#b00020}.good{color:#1b7a2f}pre{white-space:pre-wrap;background:#f6f6f6;padding:1em}
svg{display:block;margin:1em 0;max-width:100%;height:auto}"""
_SHOWN = (
    ("t100_s", "seconds until all were back"),
    ("ideal_s", "seconds at best"),
    ("recovery_ratio", "recovery ratio"),
    ("attempts_per_client", "tries each"),
    ("peak_admitted_per_s", "most admissions in a second, beyond the burst"),
    ("denied", "tries told when to come"),
    ("failed", "tries that failed"),
    ("denial_p99_ms", "milliseconds to a denial, p99"),
)


def write_report(file: str, conductor: Conductor, missed: Sequence[str]) -> None:
    """Write it.

    Raises:
        LoadtestError: the file cannot be written.
    """
    plan = conductor.plan
    what = f"{counted(plan.crowd.total, 'client')} at {escape(' '.join(plan.crowd.urls))}, {plan.rate:g} a second"
    parts = [f"<p>{what}; cut off: {escape(plan.cut)}.</p>", *_notes(missed, "bad")]
    for number, played in enumerate(conductor.rounds, 1):
        parts += [f"<h2>Round {number}</h2>", *_round(played)]
    write_output("--report", file, page("herdgate herd", parts))


def page(title: str, parts: Iterable[str]) -> str:
    """A whole page."""
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    body = f"<h1>{escape(title)}</h1>{''.join(parts)}"
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def table(record: Record) -> str:
    """The figures of a record that matter most, and each behaviour."""
    plain = record.as_dict()
    rows = [f"<tr><td>{text}</td><td>{_number(plain[name])}</td></tr>" for name, text in _SHOWN]
    kinds = [
        f"<tr><td>{escape(name)}</td><td>{kind['back']:,} of {kind['clients']:,} back, "
        f"{kind['attempts_per_client']:.2f} tries each, wait {_number(kind['wait_p50_s'])} s (median), "
        f"{_number(kind['wait_max_s'])} s (longest)</td></tr>"
        for name, kind in plain["behaviours"].items()
    ]
    return f"<table>{''.join(rows + kinds)}</table>"


def per_second_chart(record: Record, admissions_s: Sequence[float], series: Mapping[str, Mapping[int, int]]) -> str:
    """Admissions, denials and failures per second since the cut, beside the rate."""
    admitted = Counter(math.floor(moment / BUCKET_S) for moment in admissions_s)
    found = {"admitted": admitted, "denied": series.get("denied", {}), "failed": series.get("failed", {})}
    last = max((bucket for counts in found.values() for bucket in counts), default=0)
    colours = {"admitted": "#1b7a2f", "denied": "#c77700", "failed": "#b00020"}
    lines = [
        Line(
            name,
            colours[name],
            [(bucket * BUCKET_S, counts.get(bucket, 0) / BUCKET_S) for bucket in range(last + 2)],
            True,
        )
        for name, counts in found.items()
        if counts
    ]
    rate = [(0.0, record.rate), ((last + 1) * BUCKET_S, record.rate)]
    return chart("tries per second", "seconds since the cut", [*lines, Line("rate", "#555", rate, is_dashed=True)])


def back_chart(record: Record, backs_s: Sequence[float]) -> str:
    """Clients that are back over time, beside the ideal."""
    backs = sorted(backs_s)
    points = [(0.0, 0.0), *((back_s, float(number)) for number, back_s in enumerate(backs, 1))]
    at_once = min(record.burst, record.clients)
    ideal = [(0.0, at_once), (record.ideal_s, float(record.clients))]
    lines = [Line("back", "#1b7a2f", points, True), Line("ideal", "#1f5fbf", ideal, is_dashed=True)]
    return chart("clients that are back", "seconds since the cut", lines)


def _round(played: Round) -> list[str]:
    record, recorded = played.record, played.recorded
    verdict = "valid" if record.valid else "INVALID"
    kept = (
        f"{counted(len(played.generators), 'process', 'processes')}, cut within {played.skew_ms:.1f} ms of each other"
    )
    backs = [who.back_s for who in recorded.outcomes if who.back_s is not None]
    return [
        f'<p class="{"good" if record.valid else "bad"}">{verdict}: {kept}</p>',
        *_notes(record.reasons, "bad"),
        table(record),
        back_chart(record, backs),
        per_second_chart(record, recorded.admissions_s, played.series),
        f"<details><summary>The record</summary><pre>{escape(json.dumps(played.as_dict(), indent=1))}</pre></details>",
    ]


def _notes(lines: Iterable[str], kind: str) -> list[str]:
    return [f'<p class="{kind}">{escape(line)}</p>' for line in lines]


def _number(value: Any) -> str:
    return (
        f"{value:,.4g}"
        if isinstance(value, float)
        else "-"
        if value is None
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )
