"""The figures of `herdgate bench fleet`: what each has to be, and what it should be."""

import math
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["FIGURES", "Bound", "at_least", "at_most", "missed"]


class Bound(NamedTuple):
    """What a figure has to be.

    Attributes:
        least, most: it holds from here to there, both included.
        aim: what it should be, for people.
    """

    least: float
    most: float
    aim: str

    def __str__(self) -> str:
        if self.least == self.most:
            return f"{self.most:g}"
        if math.isinf(self.most):
            return f"at least {self.least:g}"
        return f"{self.least:g} to {self.most:g}" if self.least > 0 else f"at most {self.most:g}"

    def holds(self, value: float) -> bool:
        """The figure is in it."""
        return self.least <= value <= self.most


def at_most(most: float, aim: float) -> Bound:
    """A bound from above."""
    return Bound(-math.inf, most, f"{aim:g}")


def at_least(least: float, aim: float) -> Bound:
    """A bound from below."""
    return Bound(least, math.inf, f"{aim:g}")


FIGURES: Mapping[str, Bound] = {
    "overshoot": at_most(1.05, 1.02),
    "recovery_ratio": at_most(1.15, 1.03),
    "redis_calls_per_decision": at_most(0.1, 0.05),
    "redis_calls_per_gateway_s": at_most(55, 50),
    "cpu_us_per_decision": at_most(15, 5),
    "added_latency_p50_ms": at_most(2, 0.5),
    "over_capacity": Bound(0, 0, "0"),
    "leak_recovery_s": at_most(12, 10),
    "outage_admission_ratio": Bound(0.5, 1.1, "0.9 to 1"),
    "sockets_lost": Bound(0, 0, "0"),
    "flush_overadmission": at_most(1.1, 1.0),
    "ticket_admissions": Bound(1, 1, "1"),
}
"""By name, in the order of the report."""


def missed(results: Mapping[str, float]) -> list[str]:
    """A line for each figure that is out of its bound."""
    return [
        f"{name} is {value:g}, not {FIGURES[name]}" for name, value in results.items() if not FIGURES[name].holds(value)
    ]
