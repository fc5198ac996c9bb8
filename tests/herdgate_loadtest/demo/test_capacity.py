"""What the demo asks of this machine before it starts anything."""

import resource

import pytest

from herdgate_loadtest.demo.capacity import check_capacity, make_room
from herdgate_loadtest.engine.preflight import Limits
from herdgate_loadtest.errors import PreflightError


def test_gateway_needs_two_descriptors_a_client() -> None:
    limits = Limits(descriptors=1_024, most_descriptors=6_064, ports=28_000)
    check_capacity(3_000, limits)
    with pytest.raises(PreflightError, match=r"^3,001 clients will not do: the gateway needs 6,066 desc.* 6,064: "):
        check_capacity(3_001, limits)


def test_gateway_needs_a_port_to_a_worker_for_each_client() -> None:
    limits = Limits(descriptors=1 << 20, most_descriptors=1 << 20, ports=100)
    check_capacity(200, limits)
    with pytest.raises(PreflightError, match=r"2 workers from 100 ports each: write --herd 200 or less$"):
        check_capacity(201, limits)


def test_soft_limit_is_raised_for_the_processes_to_come() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        make_room(1_000)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (2_064, before[1])
        make_room(10)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (2_064, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
