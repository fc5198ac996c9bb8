"""The reports of all children as one.

Counts are added up. What all children share (rate, burst, tokens, firm slots, hints, admitted share) is taken once,
from the first report, which should be the newest. A worker is in the worst state that any child sees it in.

What was counted in children that have ended still counts: a counter never goes back.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from herdgate import FleetSnapshot, GateSnapshot
from herdgate.core.answers import Reason
from herdgate_gateway.drain.status import sum_of
from herdgate_gateway.processes.reports import Report
from herdgate_gateway.workers import WorkerSnapshot

__all__ = ["NOTHING", "Sums"]

NOTHING = Report(is_ready=False, gates={}, workers=())

_NOW = ("pending", "open", "held", "client_keys")
_SO_FAR = ("admitted", "gone", "unenforced", "exempt")
_STATES = ("removed", "up", "ramping", "broken")


class Sums:
    """Adds up, and remembers what was counted in those that have ended."""

    def __init__(self) -> None:
        self._ended = NOTHING

    def end(self, last: Report) -> None:
        """A child has ended; this was its last report."""
        self._ended = _added([_over(last), self._ended])

    def total(self, reports: Sequence[Report]) -> Report:
        """All of these, and those that have ended."""
        return _added([*reports, self._ended])


def _added(reports: Sequence[Report]) -> Report:
    first = next((report for report in reports if report.gates), NOTHING)
    urls = {worker.url: None for worker in first.workers}  # in that order
    # Not listed any more, with sockets at some.
    urls |= {worker.url: None for report in reports for worker in report.workers if worker.open or worker.pending}
    return Report(
        is_ready=any(report.is_ready for report in reports),
        gates={route: _gate([r.gates[route] for r in reports if route in r.gates]) for route in first.gates},
        workers=[_worker([w for r in reports for w in r.workers if w.url == url]) for url in urls],
        drain=sum_of([report.drain for report in reports if report.drain is not None]),
    )


def _gate(gates: Sequence[GateSnapshot]) -> GateSnapshot:
    first = gates[0]
    denied = Counter[Reason]()
    for gate in gates:
        denied.update(gate.denied)
    classes = {
        name: replace(klass, admitted=sum(gate.classes[name].admitted for gate in gates if name in gate.classes))
        for name, klass in first.classes.items()
    }
    added = {name: sum(getattr(gate, name) for gate in gates) for name in (*_NOW, *_SO_FAR)}
    fleet = _fleet([gate.fleet for gate in gates if gate.fleet is not None])
    return replace(first, denied=dict(denied), classes=classes, fleet=fleet, **added)


def _fleet(fleets: Sequence[FleetSnapshot]) -> FleetSnapshot | None:
    if not fleets:
        return None
    is_up, calls = all(fleet.is_up for fleet in fleets), sum(fleet.calls for fleet in fleets)
    return replace(fleets[0], is_up=is_up, calls=calls)


def _worker(seen: Sequence[WorkerSnapshot]) -> WorkerSnapshot:
    added = {name: sum(getattr(worker, name) for worker in seen) for name in ("open", "pending", "failures")}
    worst = max((worker.state for worker in seen), key=_STATES.index)
    return replace(seen[0], state=worst, **added)


def _over(last: Report) -> Report:
    """What remains of a child that has ended: what it has counted so far."""
    gates = {route: _counted(gate) for route, gate in last.gates.items()}
    workers = [replace(worker, open=0, pending=0, state="up") for worker in last.workers]
    return Report(is_ready=False, gates=gates, workers=workers)


def _counted(gate: GateSnapshot) -> GateSnapshot:
    fleet = replace(gate.fleet, is_up=True) if gate.fleet else None
    nothing: dict[str, Any] = dict.fromkeys(_NOW, 0)
    return replace(gate, fleet=fleet, **nothing)
