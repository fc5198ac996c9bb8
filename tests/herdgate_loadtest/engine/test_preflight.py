"""Can this machine carry the crowd?"""

from pathlib import Path

import pytest

from herdgate_loadtest.engine.config import CrowdConfig, loopback_sources
from herdgate_loadtest.engine.crowd import Crowd
from herdgate_loadtest.engine.preflight import Limits, check_limits, preflight, read_limits
from herdgate_loadtest.errors import PreflightError

ROOMY = Limits(descriptors=100_000, most_descriptors=100_000, ports=28_232)


def test_too_many_clients_for_one_source_address_fail_with_the_numbers() -> None:
    with pytest.raises(PreflightError) as caught:
        check_limits(40_000, ROOMY)
    message = str(caught.value)
    assert "\n" not in message
    for part in ("40,000 ports", "one source address has 28,232", "use 2 source addresses"):
        assert part in message


@pytest.mark.parametrize(
    ("clients", "sources", "listeners"),
    [(28_232, 1, 1), (40_000, 2, 1), (40_000, 1, 2), (56_464, 2, 1)],
)
def test_enough_sources_or_listeners_pass(clients: int, sources: int, listeners: int) -> None:
    assert check_limits(clients, ROOMY, sources=sources, listeners=listeners) == []


def test_too_few_descriptors_fail_with_the_numbers() -> None:
    limits = Limits(descriptors=1024, most_descriptors=20_000, ports=28_232)
    with pytest.raises(PreflightError, match=r"20,064 descriptors, the hard limit is 20,000.*use 2 processes"):
        check_limits(20_000, limits)


def test_descriptors_are_counted_in_each_process() -> None:
    limits = Limits(descriptors=1024, most_descriptors=1064, ports=28_232)
    assert check_limits(2_000, limits, processes=2) == []
    with pytest.raises(PreflightError, match=r"1,001 of them in a process need 1,065 .* or use 3 processes"):
        check_limits(2_001, limits, processes=2)


def test_more_processes_are_no_way_out_where_one_has_no_room_at_all() -> None:
    with pytest.raises(
        PreflightError, match=r"they need 69 descriptors, the hard limit is 20: raise it \(ulimit -Hn\)$"
    ):
        check_limits(5, Limits(20, 20, 28_232))


def test_all_that_is_missing_is_said_at_once() -> None:
    with pytest.raises(PreflightError, match=r"use 2 source addresses; they need 40,064 descriptors"):
        check_limits(40_000, Limits(1024, 20_000, 28_232))


@pytest.mark.parametrize(
    ("reuse", "loopback", "warned"),
    [(0, True, True), (0, False, True), (1, False, False), (2, True, False), (2, False, True)],
)
def test_ports_in_time_wait_are_warned_of_unless_the_kernel_reuses_them(
    reuse: int, loopback: bool, warned: bool
) -> None:
    limits = Limits(100_000, 100_000, 28_232, time_wait=20_000, reuse=reuse)
    warnings = check_limits(10_000, limits, loopback=loopback)
    assert bool(warnings) is warned
    assert all("20,000 connections are in TIME_WAIT" in warning for warning in warnings)


def test_this_machine_can_be_asked() -> None:
    limits = read_limits()
    assert 0 < limits.descriptors <= limits.most_descriptors
    assert 1_000 < limits.ports < 65_536
    assert limits.time_wait >= 0


def test_system_that_tells_nothing_has_the_ports_of_the_registry(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("_PORT_RANGE", "_SOCKSTAT", "_REUSE"):
        monkeypatch.setattr(f"herdgate_loadtest.engine.preflight.{name}", tmp_path / "absent")
    limits = read_limits()
    assert (limits.ports, limits.time_wait, limits.reuse) == (16_384, 0, 0)


def test_soft_limit_is_raised_to_what_is_needed() -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1_000:
        pytest.skip("the hard limit is too low to raise anything")
    resource.setrlimit(resource.RLIMIT_NOFILE, (600, hard))
    try:
        preflight(800)
        assert read_limits().descriptors == 864
        preflight(100)
        assert read_limits().descriptors == 864, "never lowered"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_crowd_that_cannot_work_opens_nothing() -> None:
    async with Crowd(CrowdConfig(urls=("ws://127.0.0.1:9/",), clients={"obey": 40_000})) as crowd:
        with pytest.raises(PreflightError, match="source addresses"):
            await crowd.bring_up()


@pytest.mark.parametrize("source", ["203.0.113.7", "::1"])
async def test_source_that_is_not_of_this_machine_is_named(source: str) -> None:
    config = CrowdConfig(urls=("ws://127.0.0.1:9/",), clients={"obey": 1}, sources=(source,))
    async with Crowd(config) as crowd:
        with pytest.raises(PreflightError, match=f"source {source}: "):
            await crowd.bring_up()


def test_loopback_sources_are_distinct_addresses() -> None:
    found = loopback_sources(300)
    assert found[0] == "127.0.0.2"
    assert len(set(found)) == 300
    assert found[-1] == "127.0.1.45"
