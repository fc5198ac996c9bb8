"""What one member of the benchmark found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Finding"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was measured.

    Attributes:
        figures: those with a bound, by name; see `herdgate_loadtest.bench.figures`.
        reasons: why they prove nothing; none: they do.
        details: further numbers, which tell how the figures came about.
    """

    figures: Mapping[str, float]
    reasons: Sequence[str] = ()
    details: Mapping[str, float] = field(default_factory=dict)
