"""What a benchmark side by side came to: values by slot, ratios of their medians, whether they are in their bounds."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from herdgate_loadtest.bench.figures import Bound

__all__ = ["Load", "Outcome"]

Load = tuple[float, float]
"""Load average of this machine when it began and when it ended."""


@dataclass(slots=True)
class Outcome:
    """One run of one benchmark.

    Attributes:
        bounds: what ratios, or medians of results, have to be, by name.
        values: of each slot, by name.
        ratios: by name.
        reasons: why all this proves nothing.
        absent: peers that are not installed.
        details: further numbers.
        load: see there.
    """

    bounds: Mapping[str, Bound]
    values: dict[str, list[float]] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    absent: Sequence[str] = ()
    details: dict[str, float] = field(default_factory=dict)
    load: Load = (0.0, 0.0)

    def add(self, name: str, value: float) -> None:
        """The value of one slot."""
        self.values.setdefault(name, []).append(value)

    def spoiled(self, reasons: Iterable[str]) -> None:
        """This run proves nothing; each reason is kept once."""
        self.reasons += [reason for reason in dict.fromkeys(reasons) if reason not in self.reasons]

    def compare(self, ours: str, theirs: str, name: str | None = None) -> None:
        """A ratio of medians, where both were measured. `name` is `ours/theirs` unless given."""
        if ours in self.values and theirs in self.values:
            below = self.median(theirs)
            self.ratios[name or f"{ours}/{theirs}"] = self.median(ours) / below if below else math.inf

    def median(self, name: str) -> float:
        """Of all slots."""
        return statistics.median(self.values[name])

    @property
    def bounded(self) -> dict[str, float]:
        """Each figure that has a bound and was measured."""
        known = {name: self.median(name) for name in self.values} | self.ratios
        return {name: known[name] for name in self.bounds if name in known}

    @property
    def missed(self) -> list[str]:
        """A line for each figure that is out of its bound."""
        return [
            f"{name} is {value:.3g}, not {self.bounds[name]}"
            for name, value in self.bounded.items()
            if not self.bounds[name].holds(value)
        ]

    @property
    def holds(self) -> bool:
        """Every figure is within its bound, and proves it."""
        return not self.missed and not self.reasons

    def as_dict(self) -> dict[str, Any]:
        """Ready for `json.dumps`: an infinite figure is the text "Infinity"."""
        return {
            "results": {
                name: {"median": _plain(self.median(name)), "min": _plain(min(values)), "max": _plain(max(values))}
                for name, values in self.values.items()
            },
            "ratios": {name: _plain(value) for name, value in self.ratios.items()},
            "valid": not self.reasons,
            "reasons": self.reasons,
            "bounds": {
                name: {
                    "value": _plain(value),
                    "has_to_be": str(self.bounds[name]),
                    "aim": self.bounds[name].aim,
                    "reached": self.bounds[name].holds(value),
                }
                for name, value in self.bounded.items()
            },
            "missed": self.missed,
            "absent": list(self.absent),
            "load": self.load,
            "details": {name: _plain(value) for name, value in self.details.items()},
        }


def _plain(value: float) -> float | str:
    return round(value, 4) if math.isfinite(value) else "Infinity"
