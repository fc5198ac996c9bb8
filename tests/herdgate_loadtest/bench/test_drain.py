"""`herdgate bench drain` from the outside. `--fast`: its figures are held to nothing but sense."""

import pytest

from tests.herdgate_loadtest.bench.sides.test_command import read, run_bench
from tests.redis_servers import redis_server


@pytest.mark.xdist_group("timing")
def test_gateways_are_drained_and_their_clients_come_back() -> None:
    with redis_server():  # or skip
        pass
    told = read(run_bench("drain", "--json"))

    results = {name: result["median"] for name, result in told["results"].items()}
    for what, clients in (("rolling", 40), ("called", 120), ("signalled", 120)):
        assert results[f"{what}_moved"] == pytest.approx(clients, abs=5)
        assert results[f"{what}_failed"] == 0
        assert results[f"{what}_tries_per_client"] < 2
        assert 0 < results[f"{what}_without_socket_p99_s"] < 10
        assert 0 < results[f"{what}_peak_over_rate"] < 2
    assert 1 < results["drain_s"] < 10
    assert results["late_is_said"] == 1
    assert 0 < results["early_moved"] <= 1
    bounds = [name for name in told["bounds"] if name.endswith("_over_ideal")]
    assert bounds == ["called_back_over_ideal", "signalled_back_over_ideal"]
