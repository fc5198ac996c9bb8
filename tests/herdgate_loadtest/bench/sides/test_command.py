"""`herdgate bench KIND` from the outside, against real servers. `--fast`: its figures are held to nothing."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from herdgate_loadtest.bench.sides.contenders import PEERS, installed

HERDGATE = (sys.executable, "-c", "from herdgate.cli import main; main()")
HERE = [name for name in PEERS if installed(name)]
WITHOUT_PEERS = {"reject": ["herdgate", "uvicorn", "naive"], "proxy": ["herdgate", "naive"]}
RESULTS = {
    "reject": [*WITHOUT_PEERS["reject"], *HERE],
    "close": ["herdgate", "uvicorn", "naive"],
    "proxy": [f"{prefix}{name}" for prefix in ("", "64k:") for name in (*WITHOUT_PEERS["proxy"], *HERE)],
    "hold": [f"{name}{suffix}" for name in (*WITHOUT_PEERS["proxy"], *HERE) for suffix in ("", "_kib_per_socket")],
    "health": [
        f"{port}_{state}_{which}_ms"
        for state in ("idle", "flood")
        for port in ("admin", "data")
        for which in ("p99", "p50")
    ],
}
RATIOS = {
    "reject": ["herdgate/uvicorn", "herdgate/naive", *(f"herdgate/{name}" for name in HERE)],
    "close": ["herdgate/uvicorn", "herdgate/naive"],
    "proxy": [f"{prefix}herdgate/{name}" for name in ("naive", *HERE) for prefix in ("", "64k:")],
    "hold": ["herdgate/naive", *(f"herdgate/{name}" for name in HERE)],
    "health": ["admin:flood/idle", "data:flood/idle", "flood/idle"],
}


def run_bench(kind: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [*HERDGATE, "bench", kind, "--fast", *options]
    env = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, env=env)


def read(finished: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert finished.stdout, finished.stderr
    (line,) = finished.stdout.splitlines()
    told: dict[str, Any] = json.loads(line)
    return told


@pytest.mark.xdist_group("timing")
@pytest.mark.parametrize("kind", list(RESULTS))
def test_contenders_do_the_same_and_it_is_told_how_dear_that_is(kind: str) -> None:
    finished = run_bench(kind, "--json")
    told = read(finished)

    assert list(told["results"]) == RESULTS[kind]
    for result in told["results"].values():
        assert 0 < result["min"] <= result["median"] <= result["max"]
    assert list(told["ratios"]) == RATIOS[kind]
    assert not [reason for reason in told["reasons"] if "too busy" not in reason and "no time" not in reason]
    assert told["valid"] == (not told["reasons"])
    assert set(told["bounds"]) <= {*RESULTS[kind], *RATIOS[kind]}
    missed = [name for name, bound in told["bounds"].items() if not bound["reached"]]
    assert [line.split(" ")[0] for line in told["missed"]] == missed
    complaints = [*(f"missed: {line}" for line in told["missed"]), *(f"not valid: {why}" for why in told["reasons"])]
    assert finished.stderr.splitlines() == [f"herdgate: {complaint}" for complaint in complaints]
    assert finished.returncode == (1 if complaints else 0)


def test_decisions_are_timed_beside_the_plainest_limiter() -> None:
    told = read(run_bench("decide", "--json"))

    assert {"plain", "keyed_gcra", "calendar", "denial"} <= set(told["results"])
    assert all(10 < result["median"] < 1e6 for result in told["results"].values())
    assert told["ratios"]["denial/plain"] > told["ratios"]["calendar/plain"] > 1
    assert set(told["bounds"]) == {"calendar/plain", "denial/plain"}


@pytest.mark.xdist_group("timing")
@pytest.mark.parametrize("kind", list(WITHOUT_PEERS)[:1])
def test_peers_that_are_not_installed_are_left_out_and_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from herdgate_loadtest.bench.sides import kinds, slots

    monkeypatch.setattr(slots, "installed", lambda name: None)
    outcome = kinds.run(kind, fast=True)

    assert list(outcome.values) == WITHOUT_PEERS[kind]
    assert outcome.absent == list(PEERS)
    assert outcome.as_dict()["absent"] == list(PEERS)
