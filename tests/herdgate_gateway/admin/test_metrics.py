"""What a scrape reads, through prometheus_client's own parser."""

import math
import re
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from herdgate import FleetSnapshot, Gate, GateSnapshot, Limits
from herdgate.core.answers import STATUS as REASONS
from herdgate.core.answers import Admitted, Arrival
from herdgate.core.clients import Client
from herdgate_gateway.admin import Status
from tests.at_once import at_once
from tests.herdgate_gateway.admin.running import Still, Worker, admin, ask

CLIENT = Client("192.0.2.1", "192.0.2.1", identified=False)


def crowded() -> GateSnapshot:
    """A gate with one socket open, one set-up in progress, and three refused for the rate."""
    gate = Gate(Limits(rate=2, burst=2), route="chat")
    permits = [answer.permit for _ in range(5) if isinstance(answer := at_once(gate.decide(Arrival(CLIENT))), Admitted)]
    permits[0].opened()
    gate.gone += 1
    gate.let_past(CLIENT, exempt=True).release()
    gate.set_admit_fraction(0.5)
    return gate.snapshot()


@pytest.fixture
def view() -> Still:
    workers = [Worker("ws://127.0.0.1:9001", open=3, pending=1), Worker("ws://[::1]:9002", state="broken", failures=5)]
    gates = {"chat": crowded(), "feed": Gate(Limits(rate=None), route="feed").snapshot()}
    return Still(Status(gates, workers, time.time(), "1.2.3"))


def scrape(view: Still) -> list[Metric]:
    with admin(view) as server:
        answer = ask(server, "/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return list(text_string_to_metric_families(answer.text))


def samples(metrics: list[Metric]) -> Iterator[tuple[str, dict[str, str], float]]:
    for metric in metrics:
        for sample in metric.samples:
            yield sample.name, sample.labels, sample.value


def value(metrics: list[Metric], name: str, **labels: str) -> float:
    (found,) = [value for sample, has, value in samples(metrics) if sample == name and has == labels]
    return found


def test_counts_of_each_route_are_told(view: Still) -> None:
    metrics = scrape(view)
    chat = view.status().gates["chat"]
    assert value(metrics, "herdgate_active", route="chat") == chat.open == 1
    assert value(metrics, "herdgate_pending", route="chat") == chat.pending == 1
    assert value(metrics, "herdgate_held", route="chat") == 0
    assert value(metrics, "herdgate_admitted_total", route="chat") == chat.admitted == 2
    assert value(metrics, "herdgate_denied_total", route="chat", reason="rate") == chat.denied["rate"] == 3
    assert value(metrics, "herdgate_gone_total", route="chat") == 1
    assert value(metrics, "herdgate_exempt_total", route="chat") == 1
    assert value(metrics, "herdgate_unenforced_total", route="chat") == 0
    assert value(metrics, "herdgate_rate", route="chat") == 2
    assert value(metrics, "herdgate_tokens", route="chat") == chat.tokens
    normal = chat.classes["normal"]
    assert value(metrics, "herdgate_hints", route="chat", **{"class": "normal"}) == normal.hints > 0
    assert value(metrics, "herdgate_class_admitted_total", route="chat", **{"class": "normal"}) == normal.admitted == 2
    assert value(metrics, "herdgate_admit_fraction", route="chat") == 0.5
    assert value(metrics, "herdgate_draining", route="chat") == 0
    assert value(metrics, "herdgate_active", route="feed") == 0


def test_no_limit_is_infinite(view: Still) -> None:
    metrics = scrape(view)
    for name in ("herdgate_rate", "herdgate_burst", "herdgate_tokens"):
        assert value(metrics, name, route="feed") == math.inf


def test_every_reason_is_there_from_the_start_under_its_own_name(view: Still) -> None:
    told = {has["reason"] for name, has, _ in samples(scrape(view)) if name == "herdgate_denied_total"}
    assert told == set(REASONS)


def test_workers_are_told(view: Still) -> None:
    metrics = scrape(view)
    assert value(metrics, "herdgate_worker_active", worker="ws://127.0.0.1:9001") == 3
    assert value(metrics, "herdgate_worker_pending", worker="ws://127.0.0.1:9001") == 1
    assert value(metrics, "herdgate_worker_failures_total", worker="ws://[::1]:9002") == 5
    for state, holds in (("up", 0), ("broken", 1), ("ramping", 0), ("removed", 0)):
        assert value(metrics, "herdgate_worker_state", worker="ws://[::1]:9002", state=state) == holds


def test_gateway_without_workers_and_routes_can_be_scraped() -> None:
    assert value(scrape(Still(Status({}, [], time.time(), "1.2.3"))), "herdgate_build_info", version="1.2.3") == 1


def test_age_of_the_main_loop_is_told() -> None:
    view = Still(Status({}, [], time.time(), "1", published_at=time.monotonic() - 7))
    assert 7 <= value(scrape(view), "herdgate_loop_age_seconds") < 60


def test_names_follow_the_conventions(view: Still) -> None:
    for metric in scrape(view):
        assert re.fullmatch(r"(herdgate|process)_[a-z_]*[a-z]", metric.name)
        assert metric.documentation
        assert metric.documentation.endswith(".")
        assert metric.type in {"counter", "gauge"}
        assert all(sample.name.endswith("_total") == (metric.type == "counter") for sample in metric.samples)
        assert not re.search(r"_(ms|milliseconds|minutes|kb|mb|percent)(_|$)", metric.name)


def test_process_is_told_too(view: Still) -> None:
    assert value(scrape(view), "process_open_fds") > 0


def test_openmetrics_is_spoken_to_those_who_ask_for_it(view: Still) -> None:
    with admin(view) as server:
        answer = ask(server, "/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    metrics: list[Metric] = list(read_openmetrics(answer.text))  # type: ignore[no-untyped-call]
    assert value(metrics, "herdgate_admitted_total", route="chat") == 2


def test_two_gateways_in_one_process_share_no_registry(view: Still) -> None:
    other = Still(Status({}, [], time.time(), "other"))
    with admin(view) as one, admin(other) as two:
        assert "1.2.3" in ask(one, "/metrics").text
        assert "1.2.3" not in ask(two, "/metrics").text


def test_fleet_is_told_where_there_is_one(view: Still) -> None:
    assert not any(name.startswith("herdgate_fleet") for name, _, _ in samples(scrape(view)))
    told = FleetSnapshot(is_up=True, gateways=3, pending=12, open=1_204, calls=99)
    gates = {name: replace(gate, fleet=told) for name, gate in view.status().gates.items()}
    metrics = scrape(Still(replace(view.status(), gates=gates)))
    assert value(metrics, "herdgate_fleet_up") == 1
    assert value(metrics, "herdgate_fleet_gateways") == 3
    assert value(metrics, "herdgate_fleet_active") == 1_204
    assert value(metrics, "herdgate_fleet_pending") == 12
    assert value(metrics, "herdgate_fleet_calls_total") == 99
