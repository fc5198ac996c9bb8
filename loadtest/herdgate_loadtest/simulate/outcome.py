"""What came of a simulation: the result record, and what happened when."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from herdgate_loadtest.engine import Record

__all__ = ["BINS_PER_S", "Outcome", "Series"]

BINS_PER_S = 10
"""Arrivals are counted per tenth of a second."""

_MOST_POINTS = 400
_WIDTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)  # bins a point


@dataclass(frozen=True, slots=True)
class Series:
    """Three curves, one value every `step_s` seconds.

    Attributes:
        arrivals: tries per second.
        admissions: per second.
        waiting: clients that are outside at the end of each step.
    """

    step_s: float
    arrivals: Sequence[float]
    admissions: Sequence[float]
    waiting: Sequence[int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome; moments are seconds from the cut.

    Attributes:
        strategy: the behaviour that every client was given; "": as the scenario says.
        record: the result record.
        arrivals: tries by tenth of a second.
        admissions: moment of each.
        losses: for each moment at which a failure cut clients off, how many.
    """

    strategy: str
    record: Record
    arrivals: Mapping[int, int]
    admissions: Sequence[float]
    losses: Sequence[tuple[float, int]]

    @property
    def last_s(self) -> float:
        """When the last thing happened."""
        return max((max(self.arrivals, default=0) + 1) / BINS_PER_S, max(self.admissions, default=0.0))

    def series(self, until_s: float) -> Series:
        """The curves from the cut to `until_s`."""
        bins = math.ceil(until_s * BINS_PER_S) + 1
        width = next((width for width in _WIDTHS if bins <= width * _MOST_POINTS), bins)
        points = math.ceil(bins / width)
        step_s = width / BINS_PER_S
        came = _summed(((each // width, count) for each, count in self.arrivals.items()), points)
        admitted = _summed(Counter(int(moment / step_s) for moment in self.admissions).items(), points)
        lost = _summed(((int(moment / step_s), count) for moment, count in self.losses), points)
        waiting, outside = [], self.record.clients
        for gone_in, gone_out in zip(admitted, lost, strict=True):
            outside += gone_out - gone_in
            waiting.append(outside)
        return Series(step_s, [count / step_s for count in came], [count / step_s for count in admitted], waiting)


def _summed(counts: Iterable[tuple[int, int]], points: int) -> list[int]:
    """Counts by number of their point; those past the last one are not shown."""
    sums = [0] * points
    for point, count in counts:
        if point < points:
            sums[point] += count
    return sums
