"""Runs members of the benchmark one after the other, and puts together what they found."""

import math
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from herdgate_loadtest.bench import capacity, cost, flush, latency, leak, outage, pressure, recovery, ticket
from herdgate_loadtest.bench.descriptors import raise_descriptors
from herdgate_loadtest.bench.figures import missed
from herdgate_loadtest.bench.finding import Finding

__all__ = ["MEMBERS", "Load", "Report", "run"]


Load = tuple[float, float]
"""Load average of this machine when a member began and when it ended."""


class Measure(Protocol):
    """Measures one member's figures."""

    def __call__(self, *, fast: bool) -> Awaitable[Finding]:
        """Small numbers if `fast`: to see that it works, not what it costs."""


MEMBERS: Mapping[str, Measure] = {
    "recovery": recovery.measure,
    "pressure": pressure.measure,
    "cost": cost.measure,
    "latency": latency.measure,
    "capacity": capacity.measure,
    "leak": leak.measure,
    "outage": outage.measure,
    "flush": flush.measure,
    "ticket": ticket.measure,
}
"""By name, in the order in which they run."""


@dataclass(slots=True)
class Report:
    """What a run came to.

    Attributes:
        results: figures by name.
        reasons: why they prove nothing, by member.
        load: by member.
        details: further numbers, by member.
    """

    results: dict[str, float] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    load: dict[str, Load] = field(default_factory=dict)
    details: dict[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def missed(self) -> list[str]:
        """A line for each figure that is out of its bound."""
        return missed(self.results)

    @property
    def holds(self) -> bool:
        """Every figure is within its bound, and proves it."""
        return not self.missed and not self.reasons

    def add(self, member: str, finding: Finding, load: Load) -> None:
        """Take over what one member found."""
        self.results.update(finding.figures)
        self.reasons += [f"{member}: {reason}" for reason in finding.reasons]
        self.load[member], self.details[member] = load, finding.details

    def as_dict(self) -> dict[str, Any]:
        """Ready for `json.dumps`: an infinite figure is the text "Infinity"."""
        return {
            "results": _plain(self.results),
            "valid": not self.reasons,
            "reasons": self.reasons,
            "missed": self.missed,
            "load": self.load,
            "details": {member: _plain(details) for member, details in self.details.items()},
        }


async def run(members: Iterable[str], *, fast: bool, tell: Callable[[str, Finding, Load], None]) -> Report:
    """Run them; `tell` hears of each as it ends.

    Raises:
        LoadtestError: one of them could not be run.
    """
    raise_descriptors()
    report = Report()
    for member in members:
        before = os.getloadavg()[0]
        finding = await MEMBERS[member](fast=fast)
        load = (round(before, 2), round(os.getloadavg()[0], 2))
        report.add(member, finding, load)
        tell(member, finding, load)
    return report


def _plain(numbers: Mapping[str, float]) -> dict[str, float | str]:
    return {name: round(value, 4) if math.isfinite(value) else "Infinity" for name, value in numbers.items()}
