"""What the demo asks of this machine before it starts anything."""

import resource

import pytest

from herdgate_loadtest.demo.capacity import check_capacity, make_room
from herdgate_loadtest.engine.preflight import Limits
from herdgate_loadtest.errors import PreflightError


def test_gateway_needs_two_descriptors_a_client_and_a_second_process_where_one_may_not_have_them() -> None:
    limits = Limits(descriptors=1_024, most_descriptors=6_469, ports=28_000)
    assert check_capacity(3_000, limits) == 1
    assert check_capacity(3_001, limits) == 2
    assert check_capacity(4_285, limits) == 2
    why = r"^4,300 clients will not do: each of two gateway processes needs 6,49\d descriptors, the hard limit is"
    with pytest.raises(PreflightError, match=why):
        check_capacity(4_300, limits)


def test_gateway_of_a_fleet_has_all_clients_in_one_process() -> None:
    limits = Limits(descriptors=1_024, most_descriptors=6_469, ports=28_000)
    assert check_capacity(3_000, limits, 1) == 1
    with pytest.raises(
        PreflightError, match=r"^3,001 clients will not do: a gateway needs 6,471 descriptors, the hard"
    ):
        check_capacity(3_001, limits, 1)


def test_gateway_needs_a_port_to_a_worker_for_each_client() -> None:
    limits = Limits(descriptors=1 << 20, most_descriptors=1 << 20, ports=100)
    check_capacity(200, limits)
    with pytest.raises(PreflightError, match=r"2 workers from 100 ports each: write --herd 200 or less$"):
        check_capacity(201, limits)


def test_soft_limit_is_raised_for_the_processes_to_come() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        assert make_room(1_000) == 1
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (2_202, before[1])
        make_room(10)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (2_202, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
