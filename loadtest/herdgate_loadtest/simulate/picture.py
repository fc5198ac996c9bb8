"""A picture of a simulation: arrivals, admissions and who waits, one curve a strategy. SVG, alone or in a page.

Rules: written by hand, without a library; complete in itself. Colours are told apart by the colour-blind (Okabe and
Ito, 2008). Arrivals have a logarithmic scale, as a crowd begins with all of itself.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from herdgate_loadtest.counted import counted
from herdgate_loadtest.simulate.outcome import Outcome, Series
from herdgate_loadtest.simulate.report import HEAD, row_of
from herdgate_loadtest.simulate.scenario import Scenario

__all__ = ["as_html", "as_svg"]

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
_WIDTH, _PANEL, _LEFT, _RIGHT, _TOP, _GAP = 960, 170, 80, 20, 60, 46
_STYLE = (
    "text{font:12px sans-serif;fill:#333}.title{font-size:15px;font-weight:bold}.end{text-anchor:end}"
    ".middle{text-anchor:middle}.grid{stroke:#ddd}polyline{fill:none;stroke-width:1.5}"
)
_PAGE_STYLE = "body{font:14px sans-serif;margin:2em}td,th{padding:.2em .8em;text-align:right}"


@dataclass(frozen=True, slots=True)
class _Panel:
    """One set of axes.

    Attributes:
        title: what it shows.
        values: of a series.
        logarithmic: scale.
    """

    title: str
    values: Callable[[Series], Sequence[float]]
    logarithmic: bool = False

    def top(self, series: Sequence[Series]) -> float:
        """The highest value of all, or 1."""
        return max(1.0, *(max(self.values(each)) for each in series))

    def share(self, value: float, top: float) -> float:
        """How high up a value is, 0 to 1."""
        return math.log1p(value) / math.log1p(top) if self.logarithmic else value / top

    def ticks(self, top: float) -> list[float]:
        """Values that are written at the axis."""
        if self.logarithmic:
            return [0.0, *(10.0**power for power in range(math.floor(math.log10(top)) + 1))]
        step = _round_step(top / 4)
        return [step * number for number in range(math.floor(top / step) + 1)]


_PANELS = (
    _Panel("arrivals a second (logarithmic)", lambda series: series.arrivals, logarithmic=True),
    _Panel("admissions a second", lambda series: series.admissions),
    _Panel("clients that wait", lambda series: series.waiting),
)
_HEIGHT = _TOP + len(_PANELS) * (_PANEL + _GAP)


def as_svg(scenario: Scenario, outcomes: Sequence[Outcome]) -> str:
    """The picture."""
    end_s = max(outcome.last_s for outcome in outcomes)
    series = [outcome.series(end_s) for outcome in outcomes]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text class="title" x="{_LEFT}" y="22">{escape(_title(scenario))}</text>',
        *_legend(outcomes),
    ]
    for place, panel in enumerate(_PANELS):
        parts += _drawn(panel, _TOP + place * (_PANEL + _GAP), series, end_s)
    return "\n".join((*parts, "</svg>\n"))


def as_html(scenario: Scenario, outcomes: Sequence[Outcome]) -> str:
    """A page with the picture and the figures."""
    rows = [f"<tr>{_cells('th', HEAD)}</tr>", *(f"<tr>{_cells('td', row_of(outcome))}</tr>" for outcome in outcomes)]
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f"<title>{escape(_title(scenario))}</title>\n<style>{_PAGE_STYLE}</style>\n</head>\n<body>",
            as_svg(scenario, outcomes),
            "<table>",
            *rows,
            "</table>\n</body>\n</html>\n",
        )
    )


def _title(scenario: Scenario) -> str:
    return f"{counted(scenario.clients, 'client')}, {scenario.rate:,g} a second, burst {scenario.burst:,g}"


def _cells(tag: str, row: Sequence[str]) -> str:
    return "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)


def _legend(outcomes: Sequence[Outcome]) -> Iterator[str]:
    x = float(_LEFT)
    for place, outcome in enumerate(outcomes):
        name = outcome.strategy or " + ".join(outcome.record.behaviours)
        yield f'<rect x="{x:g}" y="33" width="14" height="4" fill="{_colour(place)}"/>'
        yield f'<text x="{x + 19:g}" y="40">{escape(name)}</text>'
        x += 40 + 7 * len(name)


def _drawn(panel: _Panel, y: float, series: Sequence[Series], end_s: float) -> Iterator[str]:
    top = panel.top(series)
    yield f'<text x="{_LEFT}" y="{y + 12:g}">{panel.title}</text>'
    base = y + _PANEL
    height = _PANEL - 20
    for tick in panel.ticks(top):
        at = base - panel.share(tick, top) * height
        yield f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
        yield f'<text class="end" x="{_LEFT - 6}" y="{at + 4:.1f}">{tick:,g}</text>'
    step = _round_step(end_s / 8)
    for number in range(math.floor(end_s / step) + 1):
        label = f"{number * step:g} s" if not number else f"{number * step:g}"
        yield f'<text class="middle" x="{_x(number * step, end_s):.1f}" y="{base + 16:g}">{label}</text>'
    for place, each in enumerate(series):
        points = " ".join(
            f"{_x((index + 0.5) * each.step_s, end_s):.1f},{base - panel.share(value, top) * height:.1f}"
            for index, value in enumerate(panel.values(each))
            if index * each.step_s <= end_s
        )
        yield f'<polyline stroke="{_colour(place)}" points="{points}"/>'


def _x(at_s: float, end_s: float) -> float:
    return _LEFT + min(1.0, at_s / end_s) * (_WIDTH - _LEFT - _RIGHT)


def _round_step(step: float) -> float:
    """The next of 1, 2, 5, 10, 20, ... that is as large."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step * 0.999)


def _colour(place: int) -> str:
    return _COLOURS[place % len(_COLOURS)]
