"""What a child reports to its parent, four times a second and once more when it ends."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from herdgate import ClassSnapshot, FleetSnapshot, GateSnapshot
from herdgate_gateway.drain.status import DrainStatus
from herdgate_gateway.workers import WorkerSnapshot

__all__ = ["REPORT_S", "Report", "pack_report", "read_report"]

REPORT_S = 0.25


class Report(NamedTuple):
    """A child at one moment.

    Attributes:
        is_ready: it accepts connections.
        gates: counts by route name.
        workers: as the child sees them.
        drain: how far its drain is; None: there is none.
    """

    is_ready: bool
    gates: Mapping[str, GateSnapshot]
    workers: Sequence[WorkerSnapshot]
    drain: DrainStatus | None = None


def pack_report(report: Report) -> dict[str, Any]:
    """For the lifeline."""
    return {
        "is_ready": report.is_ready,
        "gates": {route: asdict(gate) for route, gate in report.gates.items()},
        "workers": [asdict(worker) for worker in report.workers],
        "drain": None if report.drain is None else asdict(report.drain),
    }


def read_report(told: Mapping[str, Any]) -> Report:
    """The same on the other side."""
    return Report(
        is_ready=told["is_ready"],
        gates={route: _gate(gate) for route, gate in told["gates"].items()},
        workers=tuple(WorkerSnapshot(**worker) for worker in told["workers"]),
        drain=DrainStatus(**told["drain"]) if told["drain"] else None,
    )


def _gate(told: Mapping[str, Any]) -> GateSnapshot:
    classes = {name: ClassSnapshot(**counts) for name, counts in told["classes"].items()}
    fleet = FleetSnapshot(**told["fleet"]) if told["fleet"] else None
    return GateSnapshot(**{**told, "classes": classes, "fleet": fleet})
