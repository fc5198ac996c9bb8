"""`herdgate bench fleet` from the outside. `--fast`: its figures are held to nothing, but they have to be there."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from herdgate_loadtest.bench.figures import FIGURES
from herdgate_loadtest.bench.suite import MEMBERS
from tests.redis_servers import redis_server

HERDGATE = (sys.executable, "-c", "from herdgate.cli import main; main()")
MEASURED = {
    "recovery": ["overshoot", "recovery_ratio"],
    "pressure": ["redis_calls_per_decision", "redis_calls_per_gateway_s"],
    "cost": ["cpu_us_per_decision"],
    "latency": ["added_latency_p50_ms"],
    "capacity": ["over_capacity"],
    "leak": ["leak_recovery_s"],
    "outage": ["outage_admission_ratio", "sockets_lost"],
    "flush": ["flush_overadmission"],
    "ticket": ["ticket_admissions"],
}
SLOW = ("capacity", "leak", "outage")
"""A fleet forgets a gateway after ten seconds, however small the numbers are."""


def run_bench(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [*HERDGATE, "bench", "fleet", *options]
    env = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, env=env)


def run_member(name: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, what it printed, what it said about that."""
    with redis_server():  # skipped where there is none
        pass
    finished = run_bench("--fast", "--json", "--only", name)
    assert finished.stdout, finished.stderr
    (line,) = finished.stdout.splitlines()
    told: dict[str, Any] = json.loads(line)
    return finished.returncode, told, finished.stderr


def test_every_figure_has_a_member_that_measures_it() -> None:
    assert list(MEASURED) == list(MEMBERS)
    assert [name for names in MEASURED.values() for name in names] == list(FIGURES)


@pytest.mark.xdist_group("timing")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak if name in SLOW else ()) for name in MEASURED]
)
def test_member_measures_its_figures_and_says_what_does_not_hold(name: str) -> None:
    code, told, said = run_member(name)

    assert list(told["results"]) == MEASURED[name]
    assert all(isinstance(value, (int, float)) for value in told["results"].values())
    assert list(told["load"]) == [name]
    assert told["valid"] == (not told["reasons"])
    complaints = [*(f"missed: {line}" for line in told["missed"]), *(f"not valid: {why}" for why in told["reasons"])]
    assert said.splitlines() == [f"herdgate: {complaint}" for complaint in complaints]
    assert code == (1 if complaints else 0)


@pytest.mark.xdist_group("timing")
def test_few_arrivals_cost_more_calls_each_and_that_is_missed() -> None:
    code, told, said = run_member("pressure")  # with --fast, 400 arrivals a second at 50 calls a second

    assert told["results"]["redis_calls_per_decision"] > 0.1
    assert code == 1
    assert "herdgate: missed: redis_calls_per_decision is 0.1" in said


@pytest.mark.xdist_group("timing")
def test_people_see_each_figure_with_its_bound_and_the_load() -> None:
    with redis_server():
        pass
    finished = run_bench("--fast", "--only", "ticket")

    (line,) = finished.stdout.splitlines()
    assert line.split()[:2] == ["ticket", "ticket_admissions"]
    assert "has to be 1, aim 1; load " in line


def test_unknown_member_is_one_line() -> None:
    finished = run_bench("--only", "nothing")

    names = ", ".join(MEMBERS)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr == f"herdgate: --only: got nothing; write one of {names}\n"


def test_missing_redis_is_one_line() -> None:
    finished = run_bench("--fast", "--only", "ticket", PATH="/nowhere")

    assert (finished.returncode, finished.stdout) == (2, "")
    told = (
        "herdgate: there is no redis-server on the PATH: install one (scripts/setup, or apt-get install redis-server)\n"
    )
    assert finished.stderr == told
