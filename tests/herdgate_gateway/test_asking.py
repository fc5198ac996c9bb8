"""What an attempt says of its worker; the attempts themselves are in `test_relay_refusals`."""

import pytest

from herdgate import Refused
from herdgate_gateway.asking import asking
from herdgate_gateway.breaker import BreakerSettings
from herdgate_gateway.worker_leg import WorkerFailed
from herdgate_gateway.workers import Assignment, WorkerPool


def taken(pool: WorkerPool) -> Assignment:
    assignment = pool.choose()
    assert assignment is not None
    return assignment


async def test_a_dial_for_which_there_was_nothing_left_here_is_no_verdict_on_a_broken_worker() -> None:
    pool = WorkerPool(["ws://127.0.0.1:9001"], BreakerSettings(failures=1, open_s=0))
    with taken(pool) as assignment:
        assignment.failed("no")

    with taken(pool) as probe, pytest.raises(Refused) as refused:
        async with asking(probe, 1):
            raise WorkerFailed("cannot connect: too many open files", is_ours=True)

    assert refused.value.reason == "upstream"
    (seen,) = pool.snapshot()
    assert (seen.failures, seen.state) == (1, "broken")


async def test_an_error_of_ours_is_passed_on_and_no_verdict() -> None:
    pool = WorkerPool(["ws://127.0.0.1:9001"])
    with taken(pool) as assignment, pytest.raises(ZeroDivisionError):
        async with asking(assignment, 1):
            raise ZeroDivisionError

    assert pool.snapshot()[0].failures == 0
