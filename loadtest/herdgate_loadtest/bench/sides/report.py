"""What people see of a benchmark side by side: one table."""

from collections.abc import Iterator

from herdgate_loadtest.bench.sides.outcome import Outcome

__all__ = ["table"]


def table(name: str, unit: str, outcome: Outcome) -> Iterator[str]:
    """Lines: results with what their slots varied between, then ratios, then what has to be."""
    yield f"{name}: {unit}; load {outcome.load[0]:g}, {outcome.load[1]:g}"
    for result, values in outcome.values.items():
        yield f"  {result:28}{outcome.median(result):12,.4g}   {min(values):,.4g} to {max(values):,.4g}"
    for ratio, value in outcome.ratios.items():
        yield f"  {ratio:28}{value:12.3g} x"
    for figure, value in outcome.bounded.items():
        bound = outcome.bounds[figure]
        yield f"  {figure} is {value:.3g}: has to be {bound}, aim {bound.aim}"
    if outcome.absent:
        yield f"  not installed, left out: {', '.join(outcome.absent)}"
