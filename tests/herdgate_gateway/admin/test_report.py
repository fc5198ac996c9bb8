"""The text of `herdgate status`."""

import time
from dataclasses import replace
from typing import Any

import pytest

from herdgate import FleetSnapshot, Gate, Limits
from herdgate_gateway.admin import Status
from herdgate_gateway.admin.report import rate_text, report
from tests.herdgate_gateway.admin.running import Still, Worker, admin, ask

ROOMS = {"ws://a:1": 1_200.0, "ws://b:1": 0.0, "ws://c:1": -1.0, "ws://d:1": float("inf")}


@pytest.fixture
def status() -> dict[str, Any]:
    gates = {"chat": Gate(Limits(rate=1_250)).snapshot(), "feed": Gate(Limits(rate=None)).snapshot()}
    workers = [Worker("ws://127.0.0.1:9001", open=1_200)]
    with admin(Still(Status(gates, workers, time.time() - 3_720, "1.2.3"))) as server:
        answer: dict[str, Any] = ask(server, "/status.json").json()
    return answer


def test_headline_says_version_uptime_and_state(status: dict[str, Any]) -> None:
    assert report(status).splitlines()[0] == "herdgate 1.2.3, up 1 h 2 min, ready"
    status.update(ready=False, reason="draining", uptime_s=75.0)
    assert report(status).splitlines()[0] == "herdgate 1.2.3, up 1 min 15 s, not ready: draining"
    status.update(uptime_s=7.9)
    assert "up 7 s," in report(status)


def test_each_route_and_worker_has_a_row_in_line_with_its_head(status: dict[str, Any]) -> None:
    status["gates"]["chat"].update(open=12_345, admit_fraction=0.5)
    lines = report(status).splitlines()
    head, chat, feed = lines[2:5]
    assert chat.split()[:5] == ["chat", "open,", "fraction", "0.5", "1,250/s"]
    assert feed.split()[:4] == ["feed", "open", "no", "limit"]
    assert chat.index("12,345") == head.index("active")
    worker_head, worker = lines[-2:]
    assert worker.split() == ["ws://127.0.0.1:9001", "up", "1,200", "0", "0"]
    assert worker.index("1,200") == worker_head.index("active")


def test_reasons_of_denials_are_told_where_there_are_any(status: dict[str, Any]) -> None:
    assert "chat denied" not in report(status)
    status["gates"]["chat"]["denied"].update(rate=3_900, full=100)
    assert "chat denied: 3,900 rate, 100 full" in report(status)
    assert " 4,000\n" in report(status)


def test_no_workers_no_table(status: dict[str, Any]) -> None:
    status["workers"] = []
    assert "worker" not in report(status)


@pytest.mark.parametrize(
    ("rate", "text"),
    [(None, "no limit"), (0.0, "0/s"), (0.5, "0.5/s"), (1_234_567.0, "1,234,567/s"), (1e-9, "1e-09/s")],
)
def test_rate_has_its_unit(rate: float | None, text: str) -> None:
    assert rate_text(rate) == text


@pytest.mark.parametrize(
    ("fleet", "line"),
    [
        ((True, 3, 12, 1_204, 9), "fleet: 3 gateways, 1,204 active, 12 pending"),
        ((True, 1, 0, 0, 9), "fleet: 1 gateway, 0 active, 0 pending"),
        ((False, 3, 12, 1_204, 9), "fleet: Redis does not answer; this gateway decides alone"),
    ],
)
def test_fleet_is_told_where_there_is_one(status: dict[str, Any], fleet: tuple[Any, ...], line: str) -> None:
    assert "fleet" not in report(status)
    names = ("is_up", "gateways", "pending", "open", "calls")
    for gate in status["gates"].values():
        gate["fleet"] = dict(zip(names, fleet, strict=True))
    for worker in status["workers"]:
        worker["room"] = None
    assert report(status).splitlines().count(line) == 1


def test_room_of_each_worker_is_told_in_a_fleet(status: dict[str, Any]) -> None:
    assert " room" not in report(status)
    gates = {"chat": replace(Gate(Limits(rate=5)).snapshot(), fleet=FleetSnapshot(True, 1, 0, 0, 1, ROOMS))}
    workers = [Worker(name) for name in (*ROOMS, "ws://e:1")]
    with admin(Still(Status(gates, workers, time.time(), "1.2.3"))) as server:
        answer = ask(server, "/status.json").json()
        metrics = ask(server, "/metrics").text
    assert [worker["room"] for worker in answer["workers"]] == [1_200, 0, "draining", None, None]
    lines = report(answer).splitlines()
    assert lines[-6].split()[-1] == "room"
    assert [line.split()[-1] for line in lines[-5:]] == ["1,200", "full", "draining", "-", "-"]
    told = [line for line in metrics.splitlines() if line.startswith("herdgate_worker_room{")]
    assert [line.split()[-1] for line in told] == ["1200.0", "0.0", "0.0", "+Inf"]
