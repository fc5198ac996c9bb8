"""Line charts as SVG, for reports that are one file and load nothing.

Rules: text of others is escaped; a chart of nothing is an empty frame. At most `_MOST_POINTS` points a line are drawn.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Line", "chart"]

_WIDTH, _HEIGHT = 760, 260
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


def chart(title: str, x_label: str, lines: Sequence[Line]) -> str:
    """An `<svg>` element."""
    points = [point for line in lines for point in line.points]
    most_x = _nice(max((x for x, _ in points), default=1.0))
    most_y = _nice(max((y for _, y in points), default=1.0))
    parts = [f'<text x="{_LEFT}" y="16" font-weight="bold">{escape(title)}</text>', *_grid(most_x, most_y, x_label)]
    for number, line in enumerate(lines):
        parts += [_path(line, most_x, most_y), _legend(line, number)]
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">{"".join(parts)}</svg>'
    )


def _x(value: float, most: float) -> float:
    return _LEFT + value / most * (_WIDTH - _LEFT - _RIGHT)


def _y(value: float, most: float) -> float:
    return _HEIGHT - _BOTTOM - value / most * (_HEIGHT - _TOP - _BOTTOM)


def _nice(most: float) -> float:
    """The next round number: the chart ends there."""
    if not _LEAST < most < math.inf:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most))
    return next(factor * power for factor in _ROUND if factor * power >= most * (1 - 1e-9))


def _grid(most_x: float, most_y: float, x_label: str) -> list[str]:
    parts = []
    for tick in range(_TICKS + 1):
        x, y = _x(tick / _TICKS, 1), _y(tick / _TICKS, 1)
        parts += [
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#ddd"/>',
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{most_y * tick / _TICKS:,g}</text>',
            f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 14}" text-anchor="middle">{most_x * tick / _TICKS:,g}</text>',
        ]
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    return [*parts, f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>']


def _path(line: Line, most_x: float, most_y: float) -> str:
    every = max(1, len(line.points) // _MOST_POINTS)
    points = [*line.points[:-1:every], *line.points[-1:]]
    words, before = [], None
    for x, y in points:
        if line.is_stepped and before is not None:
            words.append(f"{_x(x, most_x):.1f},{before:.1f}")
        before = _y(y, most_y)
        words.append(f"{_x(x, most_x):.1f},{before:.1f}")
    dashes = ' stroke-dasharray="6 4"' if line.is_dashed else ""
    return f'<polyline fill="none" stroke="{line.colour}" stroke-width="1.5"{dashes} points="{" ".join(words)}"/>'


def _legend(line: Line, number: int) -> str:
    x = _WIDTH - _RIGHT - 130 * (number + 1)
    return f'<text x="{x}" y="16" fill="{line.colour}">{"- -" if line.is_dashed else "—"} {escape(line.name)}</text>'
