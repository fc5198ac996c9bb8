"""All children as one gateway, for the admin thread."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import herdgate
from herdgate import GateSnapshot
from herdgate_gateway.admin import Status
from herdgate_gateway.processes.reports import Report
from herdgate_gateway.published import PublishedView

if TYPE_CHECKING:
    from herdgate_gateway.processes.parent import Parent

__all__ = ["parent_view"]


def parent_view(parent: "Parent", stale_after_s: float) -> PublishedView:
    """Ready while any child takes arrivals, until the start of a drain.

    Args:
        parent: in the running loop.
        stale_after_s: age of its last report from which a child counts as blocked, seconds.
    """

    def is_ready(status: Status) -> bool:
        return (
            not parent.is_stopping
            and not parent.is_draining
            and any(child.state == "ready" for child in status.children)
        )

    return PublishedView(parent, partial(_take, parent, stale_after_s), is_ready)


def _take(parent: "Parent", stale_after_s: float, started_at: float) -> Status:
    reports = [(keeper.reported_at, keeper.report) for keeper in parent.keepers if keeper.report is not None]
    reports.sort(key=lambda entry: (_knows_calendar(entry[1]), entry[0]), reverse=True)
    total = parent.sums.total([report for _, report in reports])
    children = [keeper.status(stale_after_s) for keeper in parent.keepers]
    gates = _gates(parent, total.gates)
    return Status(gates, total.workers, started_at, herdgate.__version__, children=children, drain=total.drain)


def _gates(parent: "Parent", gates: Mapping[str, GateSnapshot]) -> Mapping[str, GateSnapshot]:
    """Children that share the parent's calendar are no fleet."""
    if parent.calendar is None:
        return gates
    return {route: replace(gate, fleet=None) for route, gate in gates.items()}


def _knows_calendar(report: Report) -> bool:
    """False for a child that has not been told of the calendar yet, or admits its share alone."""
    return all(gate.fleet is not None and gate.fleet.is_up for gate in report.gates.values())
