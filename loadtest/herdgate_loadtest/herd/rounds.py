"""What came of one round of a herd: the result record of all processes together, and how well they kept together."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from herdgate_loadtest.counted import counted
from herdgate_loadtest.engine import Record
from herdgate_loadtest.engine.recorded import Recorded, together

__all__ = ["Round", "Told", "round_of"]


@dataclass(frozen=True, slots=True)
class Told:
    """What one process told of a round, in the master's seconds.

    Attributes:
        recorded: by its clients.
        cut_at: when it began to cut.
        clock_error_s: how wrong that may be.
        took_s: seconds for which it cut.
        answers: what tries came to, by name.
        series: outcome, bucket and number of tries, see `herdgate_loadtest.herd.swarm.BUCKET_S`.
        generator: how it fared: lag, share of a core.
    """

    recorded: Recorded
    cut_at: float
    clock_error_s: float
    took_s: float
    answers: Mapping[str, int]
    series: Sequence[tuple[str, int, int]]
    generator: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Round:
    """One round.

    Attributes:
        record: the result record.
        recorded: what it was computed from.
        skew_ms: between the first and the last process that cut, clock error included.
        cut_ms: from the first to the last socket that was cut.
        answers: what tries came to.
        series: tries by outcome and bucket.
        generators: how each process fared.
    """

    record: Record
    recorded: Recorded
    skew_ms: float
    cut_ms: float
    answers: Mapping[str, int]
    series: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    generators: Sequence[Mapping[str, float]] = ()

    def with_permits(self, left: int) -> "Round":
        """The same, with the permits that were taken still when everybody had left."""
        return replace(self, record=replace(self.record, leaked_permits=left))

    def as_dict(self) -> dict[str, Any]:
        """The result record, and what it is worth; ready for `json.dumps`."""
        return self.record.as_dict() | {
            "processes": len(self.generators),
            "skew_ms": round(self.skew_ms, 2),
            "cut_ms": round(self.cut_ms, 2),
            "answers": dict(self.answers),
            "generator": list(self.generators),
        }


def round_of(told: Sequence[Told], *, rate: float, burst: float, most_skew_s: float, least_cut_off: int = 1) -> Round:
    """Put together what the processes told; a round in which fewer were cut off than should be shows nothing."""
    began = min(part.cut_at for part in told)
    skew_s = max(part.cut_at + part.clock_error_s for part in told) - began
    recorded = together([part.recorded for part in told])
    if skew_s > most_skew_s:
        late = f"the last process cut {skew_s * 1e3:.0f} ms after the first; {most_skew_s * 1e3:.0f} is too much"
        recorded = replace(recorded, reasons=[*recorded.reasons, late])
    if (cut_off := len(recorded.outcomes)) < least_cut_off:
        few = (
            f"{cut_off:,} of {counted(least_cut_off, 'client')} were cut off: is it the server that has their sockets?"
        )
        recorded = replace(recorded, reasons=[*recorded.reasons, few])
    answers: Counter[str] = Counter()
    series: dict[str, Counter[int]] = {}
    for part in told:
        answers.update(part.answers)
        for outcome, bucket, times in part.series:
            series.setdefault(outcome, Counter())[bucket] += times
    return Round(
        record=recorded.record(rate=rate, burst=burst),
        recorded=recorded,
        skew_ms=skew_s * 1e3,
        cut_ms=(max(part.cut_at + part.took_s for part in told) - began) * 1e3,
        answers=dict(answers.most_common()),
        series=series,
        generators=[part.generator for part in told],
    )
