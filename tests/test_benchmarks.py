"""The benchmark of health checks, in small: so that it cannot rot. Its figures are for people."""

import json
import subprocess
import sys

import pytest

from benchmarks.health import percentile
from tests.servers import ROOT


def test_health_is_measured_idle_and_beside_refusals() -> None:
    command = [sys.executable, "-m", "benchmarks.health", "--slots", "1", "--seconds", "0.3", "--json"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False)
    assert finished.returncode == 0, finished.stderr

    told = json.loads(finished.stdout)
    assert (told["slots"], told["seconds"]) == (1, 0.3)
    assert [row["health"] for row in told["health"]] == ["admin listener", "health_path", "stock uvicorn"]
    for row in told["health"]:
        assert row["refusals_per_s"] > 10
        assert 0 < row["cpu"] < 2
        assert 0 < row["idle_p50_ms"] <= row["idle_p99_ms"]
        assert 0 < row["flood_p50_ms"] <= row["flood_p99_ms"]
        assert row["ratio_p99"] == pytest.approx(row["flood_p99_ms"] / row["idle_p99_ms"])


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.99, 99), (1.0, 100)])
def test_percentile_is_the_nearest_rank(share: float, value: int) -> None:
    assert percentile([float(number) for number in range(1, 101)], share) == value
