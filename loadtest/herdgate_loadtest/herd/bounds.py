"""What a result has to be: bounds that are given as options and make the exit code.

Rules: a figure that is infinite, or null where a bound was given, is out of it: nothing was shown.
"""

from collections.abc import Mapping, Sequence

from herdgate_loadtest.engine import Record

__all__ = ["BOUNDS", "missed"]

BOUNDS: Mapping[str, str] = {
    "recovery_ratio": "t100 of the obedient / ideal",
    "t95_s": "seconds until 95 % are back",
    "t100_s": "seconds until all are back",
    "attempts_per_client": "dials since the cut",
    "peak_admitted_per_s": "admissions in the busiest second",
    "denial_p99_ms": "milliseconds to a denial",
    "failed": "tries with neither admission nor denial",
}
"""Fields of the result record that may have a most, and what they are."""


def missed(records: Sequence[Record], most: Mapping[str, float]) -> list[str]:
    """A line for each figure of each round that is out of its bound."""
    lines = []
    for number, record in enumerate(records, 1):
        for name, bound in most.items():
            figure = getattr(record, name)
            if figure is None or not figure <= bound:
                shown = "null" if figure is None else f"{figure:.4g}"
                lines.append(f"round {number}: {name} was {shown}, may be {bound:g} at most")
    return lines
