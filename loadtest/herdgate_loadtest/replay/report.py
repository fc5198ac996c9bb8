"""The HTML report of a replay, one file that loads nothing."""

import json
from collections import Counter
from collections.abc import Sequence
from html import escape

from herdgate_loadtest.chart import Line, chart
from herdgate_loadtest.herd.report import page, per_second_chart, table
from herdgate_loadtest.output_file import write_output
from herdgate_loadtest.replay.player import Result

__all__ = ["write_report"]


def write_report(file: str, trace: str, urls: Sequence[str], result: Result, missed: Sequence[str]) -> None:
    """Write it.

    Raises:
        LoadtestError: the file cannot be written.
    """
    record = result.record
    verdict = "valid" if record.valid else "INVALID: " + "; ".join(record.reasons)
    parts = [
        f"<p>{escape(trace)} at {escape(' '.join(urls))}, {record.rate:g} a second. {escape(verdict)}</p>",
        *(f'<p class="bad">{escape(line)}</p>' for line in missed),
        table(record),
        f"<p>Admissions beyond burst and rate, in the worst of all windows: {max(0.0, result.beyond_bucket):.0f}</p>",
        per_second_chart(record, result.recorded.admissions_s, result.series),
        _outside_chart(result),
        f"<details><summary>The record</summary><pre>{escape(json.dumps(result.as_dict(), indent=1))}</pre></details>",
    ]
    write_output("--report", file, page("herdgate replay", parts))


def _outside_chart(result: Result) -> str:
    """Those who were cut off or came, and those who got in, over time."""
    lines = [
        Line("cut off, or new", "#b00020", _sums(result.cuts_s), is_stepped=True),
        Line("admitted", "#1b7a2f", _sums(result.recorded.admissions_s), is_stepped=True),
    ]
    return chart("clients, added up", "seconds since the first cut", lines)


def _sums(moments: Sequence[float]) -> list[tuple[float, float]]:
    counts, total, points = Counter(round(moment, 2) for moment in moments), 0, [(0.0, 0.0)]
    for moment in sorted(counts):
        total += counts[moment]
        points.append((moment, float(total)))
    return points
