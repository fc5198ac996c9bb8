"""Scenarios in files: what they mean, and that each fault is one line that tells the way out."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from herdgate.core.limits import Limits
from herdgate_loadtest.errors import UnreadableError
from herdgate_loadtest.simulate.reading import parse_scenario, read_scenario
from herdgate_loadtest.simulate.scenario import GatewayDown, RateChange, Scenario, Worker, WorkerKilled

LEAST: dict[str, Any] = {"clients": 10, "rate": 5}

WHOLE = """
clients = 1_000
rate = 50
burst = 10
seed = 7
spread_s = 1
hold_s = 2
grace_s = 30
hint_cap_s = 20
horizon_s = 300
max_wait_s = 1.5
max_held = 20
gateways = 3
answers_per_s = 2_000
until_s = 900

[behaviours]
obey = 0.75
"fixed:15" = 0.25

[[workers]]
capacity = 600
latency_s = 0.02

[[workers]]

[[failures]]
at_s = 10
gateway = 3
for_s = 5

[[failures]]
at_s = 20
worker = 1

[[failures]]
at_s = 30
rate = 0
"""


def test_every_key_is_read(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(WHOLE)
    assert read_scenario(str(tmp_path / "scenario.toml")) == Scenario(
        clients=1_000,
        limits=Limits(rate=50, burst=10, hold_s=2, grace_s=30, hint_cap_s=20, horizon_s=300),
        behaviours={"obey": 0.75, "fixed:15": 0.25},
        seed=7,
        spread_s=1,
        max_wait_s=1.5,
        max_held=20,
        gateways=3,
        answers_per_s=2_000,
        workers=(Worker(600, 0.02), Worker()),
        failures=(GatewayDown(10, 3, 5), WorkerKilled(20, 1), RateChange(30, 0)),
        until_s=900,
    )


def test_clients_and_rate_are_enough() -> None:
    scenario = parse_scenario(LEAST)
    assert scenario == Scenario(10, Limits(rate=5), {"obey": 1.0})
    assert (scenario.burst, scenario.end_s) == (5, 3_602)


def test_two_names_of_one_behaviour_are_one() -> None:
    assert parse_scenario({**LEAST, "behaviours": {"fixed": 0.5, "fixed:1": 0.5}}).behaviours == {"fixed": 1.0}


def test_thirds_are_a_whole() -> None:
    shares = {"obey": 0.3333333, "hint": 0.3333333, "jitter": 0.3333334}
    assert parse_scenario({**LEAST, "behaviours": shares}).behaviours == shares


def test_a_burst_that_is_left_out_is_a_second_of_the_rate() -> None:
    assert parse_scenario({"clients": 1, "rate": 0.5}).burst == 1


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"sede": 3}, "sede: nobody knows this key here; did you mean seed?"),
    "unknown as nothing else": ({"xyzzy": 3}, "xyzzy: nobody knows this key here; leave it out; known are "),
    "unknown case": ({"Burst": 3}, "Burst: nobody knows this key here; did you mean burst?"),
    "text": ({"clients": "10"}, "clients: got '10'; write a whole number of clients, from 1 to 10_000_000"),
    "half a client": ({"clients": 1.5}, "clients: got 1.5; write a whole number of clients, from 1 to 10_000_000"),
    "no client": ({"clients": 0}, "clients: got 0; write a whole number of clients, from 1 to 10_000_000"),
    "truth": ({"rate": True}, "rate: got true; write admissions per second, from 1e-09 to 1_000_000_000"),
    "table": ({"rate": {}}, "rate: got a table; write admissions per second, from 1e-09 to 1_000_000_000"),
    "date": ({"seed": date(2026, 11, 30)}, "seed: got a date or a time; write a whole number, from 0 to "),
    "no rate": ({"rate": 0}, "rate: got 0; write admissions per second, from 1e-09 to 1_000_000_000"),
    "not a number": ({"rate": float("nan")}, "rate: got nan; write admissions per second, from 1e-09 to 1_000_000_000"),
    "small burst": (
        {"burst": 0.5},
        "burst: got 0.5; write a number of admissions, from 1 to 1_000_000_000, or leave it out for one second of ",
    ),
    "hint cap": ({"hint_cap_s": 0}, "hint_cap_s: got 0; write seconds, from 1 to 3_600"),
    "default in the way": (
        {"hint_cap_s": 700},
        "horizon_s: got 600.0; write seconds, hint_cap_s at least, from 700 to 3_600",
    ),
    "hold": ({"hold_s": -1}, "hold_s: got -1; write seconds, from 0 to 3_600"),
    "wait": ({"max_wait_s": "long"}, "max_wait_s: got 'long'; write seconds, from 0 to 1_000_000"),
    "gateways": ({"gateways": 0}, "gateways: got 0; write a whole number of gateways, from 1 to 1_000"),
    "answers": ({"answers_per_s": 0}, "answers_per_s: got 0; write answers per second, from 1e-09 to 1_000_000_000"),
    "shares": ({"behaviours": {"obey": 0.5}}, "behaviours: their shares add up to 0.5; make them add up to 1"),
    "no shares": ({"behaviours": {}}, "behaviours: their shares add up to 0; make them add up to 1"),
    "share": ({"behaviours": {"obey": 2}}, "behaviours.obey: got 2; write a share of the clients, from 0 to 1"),
    "behaviour": (
        {"behaviours": {"obay": 1}},
        "behaviours: got obay; did you mean obey? write one of obey, ",
    ),
    "interval": (
        {"behaviours": {"fixed:soon": 1}},
        "behaviours: got fixed:soon; write the interval in seconds, as in fixed:15",
    ),
    "behaviours": ({"behaviours": "obey"}, "behaviours: got 'obey'; write shares, as in obey = 1.0"),
    "workers": ({"workers": 2}, "workers: got 2; write tables, each as [[workers]]"),
    "worker": ({"workers": {"capacity": 3}}, "workers: got a table; write tables, each as [[workers]]"),
    "capacity": (
        {"workers": [{}, {"capacity": -1}]},
        "workers[1].capacity: got -1; write a whole number of sockets, from 0 to 10_000_000",
    ),
    "latency": (
        {"workers": [{"latency": 1}]},
        "workers[0].latency: nobody knows this key here; did you mean latency_s?",
    ),
    "no such gateway": (
        {"failures": [{"at_s": 1, "gateway": 2}]},
        "failures[0].gateway: got 2; write the number of a gateway, from 1 to 1",
    ),
    "no such worker": (
        {"failures": [{"at_s": 1, "worker": 0}]},
        "failures[0].worker: got 0; write the number of a worker, from 1 to 1",
    ),
    "no failure": ({"failures": [{"at_s": 1}]}, "failures[0]: got nothing; write one of gateway, worker and rate"),
    "two failures": (
        {"failures": [{"at_s": 1, "gateway": 1, "rate": 3}]},
        "failures[0]: got gateway and rate; write one of gateway, worker and rate",
    ),
    "when": ({"failures": [{"rate": 1}]}, "failures[0].at_s: got nothing; write seconds, from 0 to 1_000_000"),
    "too late": (
        {"until_s": 60, "failures": [{"at_s": 61, "rate": 1}]},
        "failures[0].at_s: got 61; write seconds, from 0 to 60.0",
    ),
    "a rate for a while": (
        {"failures": [{"at_s": 1, "rate": 1, "for_s": 3}]},
        "failures[0].for_s: nobody knows this key here; leave it out; known are at_s, rate",
    ),
    "strange key": ({"a\nb": 1}, "a\\nb: nobody knows this key here; leave it out; known are "),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_one_line_that_tells_the_way_out(name: str) -> None:
    change, told = FAULTS[name]
    with pytest.raises(UnreadableError) as caught:
        parse_scenario(LEAST | change)
    (fault,) = caught.value.faults
    assert fault.startswith(told)
    assert "\n" not in fault


def test_what_is_missing_is_told() -> None:
    with pytest.raises(UnreadableError) as caught:
        parse_scenario({})
    assert sorted(fault.partition(";")[0] for fault in caught.value.faults) == [
        "clients: got nothing",
        "rate: got nothing",
    ]


def test_all_faults_are_told_at_once() -> None:
    wrong = {"clients": 0, "burst": 0, "hold_s": -1, "seed": -1, "nonsense": 1, "workers": [{"capacity": "x"}]}
    with pytest.raises(UnreadableError) as caught:
        parse_scenario({"rate": 1, **wrong})
    assert len(caught.value.faults) == 6


CONTENTS = {
    "no TOML": (b"clients = ", "is not TOML: "),
    "twice": (b"clients = 1\nclients = 2\n", "is not TOML: "),
    "no UTF-8": (b"# \xff\n", "is not UTF-8, from byte 2 on"),
    "too large": (b"#" * (1 << 20) + b"\n", "is larger than 1 MiB; name the right file"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_that_is_no_scenario_is_one_fault(name: str, tmp_path: Path) -> None:
    content, told = CONTENTS[name]
    (tmp_path / "scenario.toml").write_bytes(content)
    with pytest.raises(UnreadableError) as caught:
        read_scenario(str(tmp_path / "scenario.toml"))
    (fault,) = caught.value.faults
    assert fault.startswith(told)


@pytest.mark.parametrize("file", ["missing.toml", "."])
def test_a_file_that_cannot_be_opened_is_one_fault(file: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="cannot be read: "):
        read_scenario(str(tmp_path / file))
