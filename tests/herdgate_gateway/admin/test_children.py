"""A gateway of several processes, as the admin listener tells of it."""

import time
from collections.abc import Sequence

import pytest

from herdgate import Gate, Limits
from herdgate_gateway.admin import ChildStatus, Status
from herdgate_gateway.admin.report import report
from tests.herdgate_gateway.admin.running import Still, admin, ask

READY, DOWN = ChildStatus(1, 4_242, "ready", 0), ChildStatus(2, None, "down", 1_234)
BLOCKED, STOPPING = ChildStatus(3, 4_244, "blocked", 0), ChildStatus(1, 4_242, "stopping", 0)


def told(children: Sequence[ChildStatus], *, ready: bool) -> Still:
    gates = {"default": Gate(Limits(rate=5)).snapshot()}
    return Still(Status(gates, [], time.time(), "1.2.3", children=children), ready=ready)


@pytest.mark.parametrize(
    ("children", "ready", "code", "text"),
    [
        ([READY], True, 200, "ready"),
        ([READY, DOWN, BLOCKED], True, 200, "ready, but child 2 is down, child 3 is blocked"),
        ([STOPPING, DOWN], False, 503, "no child is ready: child 1 is stopping, child 2 is down"),
        ([READY], False, 503, "starting or stopping"),
        ([], True, 200, "ready"),
    ],
)
def test_readiness_names_the_children_that_take_no_arrivals(
    children: Sequence[ChildStatus], ready: bool, code: int, text: str
) -> None:
    with admin(told(children, ready=ready)) as server:
        answer = ask(server, "/readyz")
    assert (answer.status_code, answer.text) == (code, f"{text}\n")


def test_each_child_has_its_metrics_and_its_row() -> None:
    with admin(told([READY, DOWN], ready=True)) as server:
        metrics, status = ask(server, "/metrics").text, ask(server, "/status.json").json()
    for line in ('child_up{child="1"} 1.0', 'child_up{child="2"} 0.0', 'child_restarts_total{child="2"} 1234.0'):
        assert f"herdgate_{line}\n" in metrics
    rows = [line.split() for line in report(status).splitlines()]
    head = rows.index(["child", "state", "pid", "restarts"])
    assert rows[head + 1 : head + 3] == [["1", "ready", "4242", "0"], ["2", "down", "-", "1,234"]]


def test_a_gateway_of_one_process_tells_of_no_children() -> None:
    with admin(told([], ready=True)) as server:
        assert "herdgate_child" not in ask(server, "/metrics").text
        assert "child" not in report(ask(server, "/status.json").json())
