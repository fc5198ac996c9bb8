"""Line charts as SVG, for reports and pictures that are one file and load nothing.

Rules: text of others is escaped; a chart of nothing is an empty frame. At most `_MOST_POINTS` points a line are drawn.
A logarithmic scale begins with 0 all the same: it is that of 1 + y.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["HEIGHT", "WIDTH", "Line", "chart"]

WIDTH, HEIGHT = 760, 260
"""Of a chart, in its own units."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 28, 40
_MOST_POINTS = 600
_TICKS = 5
_LEAST = 1e-9
_ROUND = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart.

    Attributes:
        name: in the legend.
        colour: of CSS.
        points: x and y, x ascending.
        is_stepped: a value holds until the next one.
        is_dashed: it is a bound or an ideal, not a measurement.
    """

    name: str
    colour: str
    points: Sequence[tuple[float, float]]
    is_stepped: bool = False
    is_dashed: bool = False


def chart(
    title: str, x_label: str, lines: Sequence[Line], *, is_logarithmic: bool = False, has_legend: bool = True
) -> str:
    """An `<svg>` element."""
    points = [point for line in lines for point in line.points]
    axes = _Axes(
        _nice(max((x for x, _ in points), default=1.0)), _nice(max((y for _, y in points), default=1.0)), is_logarithmic
    )
    parts = [f'<text x="{_LEFT}" y="16" font-weight="bold">{escape(title)}</text>', *_grid(axes, x_label)]
    for number, line in enumerate(lines):
        parts += [_path(line, axes), *([_legend(line, number)] if has_legend else [])]
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">{"".join(parts)}</svg>'
    )


@dataclass(frozen=True, slots=True)
class _Axes:
    """Where a value is drawn."""

    most_x: float
    most_y: float
    is_logarithmic: bool

    def x(self, value: float) -> float:
        return _LEFT + value / self.most_x * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        share = math.log1p(value) / math.log1p(self.most_y) if self.is_logarithmic else value / self.most_y
        return HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM)

    def y_ticks(self) -> list[float]:
        if not self.is_logarithmic:
            return [self.most_y * tick / _TICKS for tick in range(_TICKS + 1)]
        return [0.0, *(10.0**power for power in range(math.floor(math.log10(max(1.0, self.most_y))) + 1))]


def _nice(most: float) -> float:
    """The next round number: the chart ends there."""
    if not _LEAST < most < math.inf:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most))
    return next(factor * power for factor in _ROUND if factor * power >= most * (1 - 1e-9))


def _grid(axes: _Axes, x_label: str) -> list[str]:
    parts = []
    for value in axes.y_ticks():
        y = axes.y(value)
        parts += [
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#ddd"/>',
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,g}</text>',
        ]
    for tick in range(_TICKS + 1):
        value = axes.most_x * tick / _TICKS
        at = f'x="{axes.x(value):.1f}" y="{HEIGHT - _BOTTOM + 14}"'
        parts.append(f'<text {at} text-anchor="middle">{value:,g}</text>')
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    return [*parts, f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>']


def _path(line: Line, axes: _Axes) -> str:
    every = max(1, len(line.points) // _MOST_POINTS)
    points = [*line.points[:-1:every], *line.points[-1:]]
    words, before = [], None
    for x, y in points:
        if line.is_stepped and before is not None:
            words.append(f"{axes.x(x):.1f},{before:.1f}")
        before = axes.y(y)
        words.append(f"{axes.x(x):.1f},{before:.1f}")
    dashes = ' stroke-dasharray="6 4"' if line.is_dashed else ""
    return f'<polyline fill="none" stroke="{line.colour}" stroke-width="1.5"{dashes} points="{" ".join(words)}"/>'


def _legend(line: Line, number: int) -> str:
    x = WIDTH - _RIGHT - 130 * (number + 1)
    return f'<text x="{x}" y="16" fill="{line.colour}">{"- -" if line.is_dashed else "—"} {escape(line.name)}</text>'
