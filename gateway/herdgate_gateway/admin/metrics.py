"""The gateway's status as Prometheus metrics, in a registry of its own.

A scrape reads one status, so that its figures belong together. No limit is +Inf. Every reason of a denial is there from
the start, at 0: a counter that appears with its first increase hides that increase from `rate()`.

Names follow https://prometheus.io/docs/practices/naming/; the reasons are those of `herdgate.core.answers`.
"""

import math
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from herdgate import ClassSnapshot, FleetSnapshot, GateSnapshot
from herdgate.core.answers import STATUS as REASONS
from herdgate_gateway.admin.view import Status, View, WorkerStatus
from herdgate_gateway.drain.status import STATES as DRAIN_STATES

__all__ = ["registry"]

WORKER_STATES = ("up", "broken", "ramping", "removed")

Numbers = dict[str, tuple[str, Callable[[GateSnapshot], float]]]

GAUGES: Numbers = {
    "herdgate_active": ("Sockets accepted and not yet gone.", lambda gate: gate.open),
    "herdgate_pending": ("Set-ups in progress: admitted, not yet accepted by a worker.", lambda gate: gate.pending),
    "herdgate_held": ("Handshakes held open until their firm slot.", lambda gate: gate.held),
    "herdgate_rate": ("Admissions per second; +Inf: no limit.", lambda gate: _or_inf(gate.rate)),
    "herdgate_burst": ("Admissions at once after a quiet time; +Inf: no limit.", lambda gate: _or_inf(gate.burst)),
    "herdgate_tokens": ("Admissions possible at this moment; +Inf: no limit.", lambda gate: _or_inf(gate.tokens)),
    "herdgate_firm_seconds": ("Seconds of refill set aside for firm slots.", lambda gate: gate.firm_s),
    "herdgate_admit_fraction": ("Share of client keys let past, 0 to 1.", lambda gate: gate.admit_fraction),
    "herdgate_draining": ("1 while every arrival is refused.", lambda gate: gate.state == "draining"),
    "herdgate_client_keys": ("Client keys remembered.", lambda gate: gate.client_keys),
}

COUNTERS: Numbers = {
    "herdgate_admitted_total": ("Arrivals admitted.", lambda gate: gate.admitted),
    "herdgate_gone_total": ("Arrivals whose client left before the verdict.", lambda gate: gate.gone),
    "herdgate_exempt_total": ("Arrivals let past without a decision.", lambda gate: gate.exempt),
    "herdgate_unenforced_total": (
        "Arrivals refused in shadow mode and let past all the same.",
        lambda gate: gate.unenforced,
    ),
}

CLASSES: dict[str, tuple[str, Callable[[ClassSnapshot], float]]] = {
    "herdgate_hints": ("Hints given and not yet due.", lambda klass: klass.hints),
    "herdgate_hint_show_ratio": ("Share of hints that are kept, moving average.", lambda klass: klass.show_rate),
    "herdgate_class_admitted_total": ("Arrivals admitted, by class.", lambda klass: klass.admitted),
}

FLEET_GAUGES: dict[str, tuple[str, Callable[[FleetSnapshot], float]]] = {
    "herdgate_fleet_up": (
        "1 while Redis answers; 0: each gateway decides alone.",
        lambda fleet: fleet.is_up,
    ),
    "herdgate_fleet_gateways": ("Processes that share the calendar.", lambda fleet: fleet.gateways),
    "herdgate_fleet_active": ("Sockets of the whole fleet.", lambda fleet: fleet.open),
    "herdgate_fleet_pending": ("Set-ups in progress in the whole fleet.", lambda fleet: fleet.pending),
}

WORKER_GAUGES: dict[str, tuple[str, Callable[[WorkerStatus], float]]] = {
    "herdgate_worker_active": ("Sockets relayed to the worker.", lambda worker: worker.open),
    "herdgate_worker_pending": ("Handshakes the worker has not answered yet.", lambda worker: worker.pending),
}


def registry(view: View) -> CollectorRegistry:
    """The metrics of one gateway and of its process."""
    metrics = CollectorRegistry()
    metrics.register(_StatusCollector(view))
    ProcessCollector(registry=metrics)
    return metrics


class _StatusCollector(Collector):
    def __init__(self, view: View) -> None:
        self._view = view

    def collect(self) -> Iterable[Metric]:
        status = self._view.status()
        yield from _process(status)
        yield from _drain(status)
        yield from _children(status)
        yield from _gates(status)
        yield from _fleet(status)
        yield from _workers(status)


def _process(status: Status) -> Iterator[Metric]:
    info = GaugeMetricFamily("herdgate_build_info", "Always 1; the version is in the label.", labels=["version"])
    info.add_metric([status.version], 1)
    yield info
    yield GaugeMetricFamily(
        "herdgate_loop_age_seconds", "Seconds since the main loop last published its counts.", value=status.age_s
    )


def _drain(status: Status) -> Iterator[Metric]:
    drain = status.drain
    state = GaugeMetricFamily("herdgate_drain_state", "1 for how far the gateway's drain is.", labels=["state"])
    for name in DRAIN_STATES:
        state.add_metric([name], drain is not None and drain.state == name)
    yield state
    left_s = 0.0 if drain is None else drain.left_s
    yield GaugeMetricFamily("herdgate_drain_left_seconds", "Seconds until the deadline of the drain.", value=left_s)


def _children(status: Status) -> Iterator[Metric]:
    if not status.children:
        return
    up = GaugeMetricFamily("herdgate_child_up", "1 while this process of several takes arrivals.", labels=["child"])
    restarts = CounterMetricFamily(
        "herdgate_child_restarts_total", "How often another process took its place.", labels=["child"]
    )
    for child in status.children:
        up.add_metric([str(child.number)], child.state == "ready")
        restarts.add_metric([str(child.number)], child.restarts)
    yield up
    yield restarts


def _gates(status: Status) -> Iterator[Metric]:
    for name, (help_, read) in GAUGES.items():
        gauge = GaugeMetricFamily(name, help_, labels=["route"])
        for route, gate in status.gates.items():
            gauge.add_metric([route], read(gate))
        yield gauge
    for name, (help_, read) in COUNTERS.items():
        counter = CounterMetricFamily(name, help_, labels=["route"])
        for route, gate in status.gates.items():
            counter.add_metric([route], read(gate))
        yield counter
    yield from _classes(status)
    denied = CounterMetricFamily("herdgate_denied_total", "Arrivals refused.", labels=["route", "reason"])
    for route, gate in status.gates.items():
        for reason in REASONS:
            denied.add_metric([route, reason], gate.denied.get(reason, 0))
    yield denied


def _classes(status: Status) -> Iterator[Metric]:
    for name, (help_, read) in CLASSES.items():
        kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
        metric = kind(name, help_, labels=["route", "class"])
        for route, gate in status.gates.items():
            for klass, counts in gate.classes.items():
                metric.add_metric([route, klass], read(counts))
        yield metric


def _fleet(status: Status) -> Iterator[Metric]:
    fleet = next((gate.fleet for gate in status.gates.values()), None)  # all routes share one
    if fleet is None:
        return
    for name, (help_, read) in FLEET_GAUGES.items():
        yield GaugeMetricFamily(name, help_, value=read(fleet))
    yield CounterMetricFamily("herdgate_fleet_calls_total", "Calls made to Redis.", value=fleet.calls)


def _workers(status: Status) -> Iterator[Metric]:
    for name, (help_, read) in WORKER_GAUGES.items():
        gauge = GaugeMetricFamily(name, help_, labels=["worker"])
        for worker in status.workers:
            gauge.add_metric([worker.url], read(worker))
        yield gauge
    failures = CounterMetricFamily(
        "herdgate_worker_failures_total", "Handshakes the worker failed to answer.", labels=["worker"]
    )
    state = GaugeMetricFamily("herdgate_worker_state", "1 for the state it is in.", labels=["worker", "state"])
    for worker in status.workers:
        failures.add_metric([worker.url], worker.failures)
        for name in WORKER_STATES:
            state.add_metric([worker.url, name], worker.state == name)
    yield failures
    yield state
    yield from _rooms(status)


def _rooms(status: Status) -> Iterator[Metric]:
    if not status.rooms:
        return
    help_ = "Sockets the worker may still get of its fleet; 0 while it drains, +Inf: no limit."
    room = GaugeMetricFamily("herdgate_worker_room", help_, labels=["worker"])
    for name, sockets in status.rooms.items():
        room.add_metric([name], max(0.0, sockets))
    yield room


def _or_inf(limit: float | None) -> float:
    return math.inf if limit is None else limit
