"""What children report, as one."""

from dataclasses import replace
from typing import Any

from herdgate import ClassSnapshot, FleetSnapshot, Gate, GateSnapshot, Limits
from herdgate_gateway.processes.reports import Report
from herdgate_gateway.processes.sums import NOTHING, Sums
from herdgate_gateway.workers import WorkerSnapshot

IDLE = Gate(Limits(rate=10)).snapshot()


def gate(**counts: Any) -> GateSnapshot:
    return replace(IDLE, **counts)


def report(*, workers: Any = (), **gates: GateSnapshot) -> Report:
    return Report(True, gates, workers)


def test_counts_are_added_up_and_what_is_shared_is_taken_once() -> None:
    one = gate(open=1, pending=2, held=3, admitted=4, gone=5, denied={"rate": 1, "full": 2}, tokens=7, client_keys=1)
    two = gate(open=10, pending=20, held=30, admitted=40, exempt=50, denied={"rate": 10}, tokens=9, unenforced=6)
    total = Sums().total([report(a=one), report(a=two)]).gates["a"]
    assert (total.open, total.pending, total.held, total.admitted) == (11, 22, 33, 44)
    assert (total.gone, total.exempt, total.unenforced, total.client_keys) == (5, 50, 6, 1)
    assert total.denied == {"rate": 11, "full": 2}
    assert (total.rate, total.burst, total.tokens) == (10, 10, 7)


def test_classes_have_the_hints_of_the_first_and_the_admissions_of_all() -> None:
    one = gate(classes={"a": ClassSnapshot(5, 0.5, 1), "new": ClassSnapshot(0, 1.0, 2)})
    two = gate(classes={"a": ClassSnapshot(6, 0.6, 10)})
    total = Sums().total([report(a=one), report(a=two)]).gates["a"]
    assert total.classes == {"a": ClassSnapshot(5, 0.5, 11), "new": ClassSnapshot(0, 1.0, 2)}


def test_workers_are_added_up_and_are_in_the_worst_state_any_child_sees() -> None:
    one = [WorkerSnapshot("ws://a:1", 1, 2, "ramping", 3), WorkerSnapshot("ws://b:1", 0, 0, "up", 0)]
    two = [WorkerSnapshot("ws://a:1", 10, 20, "up", 30), WorkerSnapshot("ws://b:1", 0, 0, "broken", 1)]
    assert Sums().total([report(workers=one, a=IDLE), report(workers=two, a=IDLE)]).workers == [
        WorkerSnapshot("ws://a:1", 11, 22, "ramping", 33),
        WorkerSnapshot("ws://b:1", 0, 0, "broken", 1),
    ]


def test_a_worker_that_only_some_children_have_sockets_at_is_told_too() -> None:
    listed = WorkerSnapshot("ws://a:1", 1, 0, "up", 0)
    removed, over = WorkerSnapshot("ws://b:1", 2, 0, "removed", 3), WorkerSnapshot("ws://c:1", 0, 0, "up", 0)
    total = Sums().total([report(workers=[listed], a=IDLE), report(workers=[listed, removed, over], a=IDLE)])
    assert total.workers == [WorkerSnapshot("ws://a:1", 2, 0, "up", 0), removed]


def test_counters_of_children_that_have_ended_stay_and_what_they_held_goes() -> None:
    sums = Sums()
    worker = WorkerSnapshot("ws://a:1", 1, 1, "broken", 4)
    for _ in range(2):
        sums.end(report(workers=[worker], a=gate(open=3, pending=1, client_keys=2, admitted=5, denied={"rate": 6})))
    total = sums.total([report(workers=[worker], a=gate(open=1, admitted=1))])
    counts = total.gates["a"]
    assert (counts.open, counts.pending, counts.client_keys, counts.admitted) == (1, 0, 0, 11)
    assert counts.denied == {"rate": 12}
    assert total.workers == [WorkerSnapshot("ws://a:1", 1, 1, "broken", 12)]
    assert sums.total([]).gates["a"].admitted == 10, "and while none lives"
    assert sums.total([]).workers[0].state == "up"


def test_routes_are_those_of_the_newest_report() -> None:
    sums = Sums()
    sums.end(report(gone=gate(admitted=1)))
    assert set(sums.total([report(a=IDLE), report(a=IDLE, old=IDLE)]).gates) == {"a"}


def test_before_any_report_there_is_nothing() -> None:
    assert Sums().total([]) == NOTHING._replace(workers=[])


def test_fleet_is_up_if_all_children_say_so_and_calls_add_up() -> None:
    up = FleetSnapshot(is_up=True, gateways=2, pending=3, open=4, calls=5)
    sums = Sums()
    sums.end(report(a=gate(fleet=replace(up, is_up=False, calls=100))))
    both = sums.total([report(a=gate(fleet=up)), report(a=gate(fleet=up))]).gates["a"].fleet
    assert both == replace(up, calls=110)
    one = sums.total([report(a=gate(fleet=up)), report(a=gate(fleet=replace(up, is_up=False)))]).gates["a"].fleet
    assert one is not None
    assert not one.is_up
