"""`herdgate bench routing` from the outside. `--fast`: its figures are held to nothing but sense."""

import pytest

from tests.herdgate_loadtest.bench.sides.test_command import read, run_bench
from tests.herdgate_loadtest.owned.fleets import check_needs

SECONDS = ("crash_reachable_s", "crash_back_s", "graceful_p99_s", "graceful_p50_s", "graceful_stop_s")


@pytest.mark.xdist_group("owned-fleet")
def test_workers_are_lost_and_their_clients_come_back() -> None:
    check_needs()
    told = read(run_bench("routing", "--json"))

    results = {name: result["median"] for name, result in told["results"].items()}
    assert [name for name in SECONDS if not isinstance(results[name], float)] == [], "somebody never came back"
    assert results["crash_reachable_s"] > 0.05
    assert results["crash_clients"] + results["graceful_clients"] > 0
    assert (results["crash_failed"], results["graceful_failed"]) == (0, 0)
    assert 0 < results["graceful_p50_s"] <= results["graceful_p99_s"] < results["graceful_stop_s"] + 60
    assert results["direct_latency_ms"] > 0
    bounds = ["crash_reachable_s", "crash_back_s", "graceful_p99_s", "routing_latency_ms"]
    assert list(told["bounds"]) == bounds
