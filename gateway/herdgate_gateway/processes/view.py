"""All children as one gateway, for the admin thread: published by the parent's loop four times a second."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import herdgate
from herdgate import GateSnapshot
from herdgate_gateway.admin import Status, hand_over
from herdgate_gateway.processes.reports import REPORT_S, Report

if TYPE_CHECKING:
    from herdgate_gateway.processes.parent import Parent

__all__ = ["ParentView"]


class ParentView:
    """What `herdgate_gateway.admin.View` asks for.

    Args:
        parent: in the running loop.
        stale_after_s: age of its last report from which a child counts as blocked, seconds.
    """

    def __init__(self, parent: "Parent", stale_after_s: float) -> None:
        self._parent = parent
        self._stale_after_s = stale_after_s
        self._loop = asyncio.get_running_loop()
        self._started_at = time.time()
        self._publish()

    def status(self) -> Status:
        """The latest counts, of all children together."""
        return self._status

    def is_ready(self) -> bool:
        """True while any child takes arrivals, until the sign to stop."""
        return not self._parent.is_stopping and any(child.state == "ready" for child in self._status.children)

    async def set_rate(self, rate: float | None) -> None:
        """Change the rate in the parent's loop."""
        await hand_over(self._loop, partial(self._parent.set_rate, rate))

    async def set_fraction(self, fraction: float) -> None:
        """Change the admitted share in the parent's loop."""
        await hand_over(self._loop, partial(self._parent.set_fraction, fraction))

    def stop(self) -> None:
        """Publish no more."""
        self._timer.cancel()

    def _publish(self) -> None:
        reports = [(keeper.reported_at, keeper.report) for keeper in self._parent.keepers if keeper.report is not None]
        reports.sort(key=lambda entry: (_knows_calendar(entry[1]), entry[0]), reverse=True)
        total = self._parent.sums.total([report for _, report in reports])
        children = [keeper.status(self._stale_after_s) for keeper in self._parent.keepers]
        self._status = Status(
            self._gates(total.gates), total.workers, self._started_at, herdgate.__version__, children=children
        )
        self._timer = self._loop.call_later(REPORT_S, self._publish)

    def _gates(self, gates: Mapping[str, GateSnapshot]) -> Mapping[str, GateSnapshot]:
        """Children that share the parent's calendar are no fleet."""
        if self._parent.calendar is None:
            return gates
        return {route: replace(gate, fleet=None) for route, gate in gates.items()}


def _knows_calendar(report: Report) -> bool:
    """False for a child that has not been told of the calendar yet, or admits its share alone."""
    return all(gate.fleet is not None and gate.fleet.is_up for gate in report.gates.values())
