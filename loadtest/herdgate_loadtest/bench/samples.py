"""Decisions of a gateway and its calls to Redis, over time."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["Sample", "alone_share", "busiest_calls_per_s", "driven"]


class Sample(NamedTuple):
    """Counts so far, at one moment.

    Attributes:
        at: monotonic seconds.
        decisions: arrivals answered.
        calls: scripts sent.
        is_alone: it decides without Redis at this moment, as that did not answer in time.
    """

    at: float
    decisions: int
    calls: int
    is_alone: bool = False


def busiest_calls_per_s(samples: Sequence[Sample], window_s: float) -> float:
    """Calls a second in the busiest window that is at least so long; 0.0 if there is none."""
    return max((_calls_per_s(first, last) for first, last in _windows(samples, window_s)), default=0.0)


def driven(samples: Sequence[Sample], least_per_s: float) -> tuple[int, int, int]:
    """Seconds with at least so many decisions, one after the other; and the decisions and calls in them."""
    seconds = decisions = calls = 0
    end = float("-inf")
    for first, last in _windows(samples, 1.0):
        if first.at >= end and last.decisions - first.decisions >= least_per_s * (last.at - first.at):
            end = last.at
            seconds += 1
            decisions += last.decisions - first.decisions
            calls += last.calls - first.calls
    return seconds, decisions, calls


def alone_share(samples: Sequence[Sample]) -> float:
    """Share of the samples in which the gateway decided without Redis."""
    return sum(sample.is_alone for sample in samples) / max(1, len(samples))


def _calls_per_s(first: Sample, last: Sample) -> float:
    return (last.calls - first.calls) / (last.at - first.at)


def _windows(samples: Sequence[Sample], window_s: float) -> Iterator[tuple[Sample, Sample]]:
    """For each sample the first one that is at least so much later."""
    last = 0
    for first in samples:
        while last < len(samples) and samples[last].at < first.at + window_s:
            last += 1
        if last == len(samples):
            return
        yield first, samples[last]
