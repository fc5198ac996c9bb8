"""A picture of a simulation: arrivals, admissions and who waits, one curve a strategy. SVG, alone or in a page.

Rules: complete in itself. Colours are told apart by the colour-blind (Okabe and Ito, 2008). Arrivals have a logarithmic
scale, as a crowd begins with all of itself.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape

from herdgate_loadtest.chart import HEIGHT, WIDTH, Line, chart
from herdgate_loadtest.counted import counted
from herdgate_loadtest.simulate.outcome import Outcome, Series
from herdgate_loadtest.simulate.report import HEAD, row_of
from herdgate_loadtest.simulate.scenario import Scenario

__all__ = ["as_html", "as_svg"]

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
_LEFT, _TOP = 64, 50
_STYLE = "text{font-family:sans-serif;fill:#333}"
_PAGE_STYLE = "body{font:14px sans-serif;margin:2em}td,th{padding:.2em .8em;text-align:right}"

_PANELS: tuple[tuple[str, Callable[[Series], Sequence[float]], bool], ...] = (
    ("arrivals a second (logarithmic)", lambda series: series.arrivals, True),
    ("admissions a second", lambda series: series.admissions, False),
    ("clients that wait", lambda series: series.waiting, False),
)
"""What each shows, values of a series, whether its scale is logarithmic."""


def as_svg(scenario: Scenario, outcomes: Sequence[Outcome]) -> str:
    """The picture."""
    end_s = max(outcome.last_s for outcome in outcomes)
    series = [outcome.series(end_s) for outcome in outcomes]
    height = _TOP + len(_PANELS) * HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="15" font-weight="bold">{escape(_title(scenario))}</text>',
        *_legend(outcomes),
    ]
    for place, (title, values, is_logarithmic) in enumerate(_PANELS):
        lines = [_line(number, each, values(each), end_s) for number, each in enumerate(series)]
        panel = chart(title, "seconds", lines, is_logarithmic=is_logarithmic, has_legend=False)
        parts.append(f'<g transform="translate(0 {_TOP + place * HEIGHT})">{panel}</g>')
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
        yield f'<text x="{x + 19:g}" y="40" font-size="12">{escape(name)}</text>'
        x += 40 + 7 * len(name)


def _line(place: int, series: Series, values: Sequence[float], end_s: float) -> Line:
    """Each value in the middle of its step."""
    moments = ((index + 0.5) * series.step_s for index in range(math.floor(end_s / series.step_s) + 1))
    points = [(min(at, end_s), value) for at, value in zip(moments, values, strict=False)]
    return Line("", _colour(place), points)


def _colour(place: int) -> str:
    return _COLOURS[place % len(_COLOURS)]
