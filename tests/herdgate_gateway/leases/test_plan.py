"""What a lease table costs."""

import pytest

from herdgate_gateway.leases.plan import Fleet, Load, Prices, full_at, leases, per_connection, with_checkpoints

PRICES = Prices(writes=0.625, reads=0.125)


@pytest.mark.parametrize(("connections", "workers"), [(1, 1), (4_000, 1), (4_001, 2), (10_000, 3), (100_000, 25)])
def test_workers_are_as_many_as_it_takes(connections: int, workers: int) -> None:
    assert Fleet(connections).workers == workers


def test_ten_thousand_connections_are_three_writes_a_second_and_some_reads() -> None:
    load = leases(Fleet(10_000))
    assert load.writes_per_s == 3
    assert load.reads_per_s == pytest.approx(3 * 8 * 0.5 + 2 * 1024 / 60)
    assert load.monthly(PRICES) == pytest.approx(20.1, abs=0.1)


def test_writes_follow_workers_and_not_connections() -> None:
    assert leases(Fleet(1_000)).writes_per_s == leases(Fleet(3_999)).writes_per_s == 1
    assert leases(Fleet(10_000, per_worker=1_000)).writes_per_s == 10
    assert leases(Fleet(10_000, beat_s=3)).writes_per_s == 1


def test_one_worker_sweeps_each_shard_once() -> None:
    assert leases(Fleet(1)).reads_per_s == pytest.approx(4 + 1024 / 60)


def test_checkpoints_are_a_write_each() -> None:
    plain = leases(Fleet(10_000))
    assert with_checkpoints(Fleet(10_000), 0.1) == Load(plain.writes_per_s + 1_000, plain.reads_per_s)
    assert with_checkpoints(Fleet(10_000), 0) == plain


def test_lease_per_connection_is_three_writes_for_each_renewal() -> None:
    assert per_connection(Fleet(10_000), lease_s=20).writes_per_s == 4_500
    assert per_connection(Fleet(10_000), lease_s=60).writes_per_s == 1_500


def test_index_of_a_lease_per_connection_is_full_at_3333_connections() -> None:
    assert full_at(20) == 3_333
    assert per_connection(Fleet(full_at(20)), 20).writes_per_s * 2 / 3 == pytest.approx(1_000, abs=1)


def test_month_has_730_hours() -> None:
    assert Load(1, 0).monthly(PRICES) == pytest.approx(730 * 3600 * 0.625e-6)
    assert Load(0, 1).monthly(PRICES) == pytest.approx(730 * 3600 * 0.125e-6)
