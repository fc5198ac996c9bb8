"""What the log says of a worker's failures: once when they begin, once when they are over."""

import logging

import pytest

from herdgate_gateway.breaker import BreakerSettings
from herdgate_gateway.worker_log import LONGEST, QUIET_S, WorkerLog
from herdgate_gateway.workers import Assignment, WorkerPool

A = "ws://127.0.0.1:9001"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def all_levels(caplog: pytest.LogCaptureFixture) -> None:
    """INFO is logged too."""
    caplog.set_level(logging.INFO, "herdgate.workers")


def take(pool: WorkerPool) -> Assignment:
    assignment = pool.choose()
    assert assignment is not None
    return assignment


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def test_a_crowd_that_fails_is_one_line_with_what_the_worker_did(caplog: pytest.LogCaptureFixture) -> None:
    pool = WorkerPool([A], BreakerSettings(failures=1_000))
    for _ in range(100):
        with take(pool) as assignment:
            assignment.failed("status 200 is no answer to a handshake")

    assert told(caplog) == [("WARNING", f"worker fails: {A} (status 200 is no answer to a handshake)")]


def test_one_that_fails_now_and_then_is_well_again_when_it_has_not_for_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    pool = WorkerPool([A], BreakerSettings(failures=5), clock)
    for clock.now in range(30):
        with take(pool) as assignment:
            assignment.failed("it hung up")
        with take(pool) as assignment:
            assignment.connected()
    assert len(caplog.records) == 1
    clock.now += QUIET_S
    for _ in range(2):
        with take(pool) as assignment:
            assignment.answered()

    assert told(caplog)[1:] == [("INFO", f"worker is well again: {A}")]


def test_one_that_breaks_is_a_line_more_and_its_return_is_the_end(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    pool = WorkerPool([A], BreakerSettings(failures=2, open_s=5, ramp_s=0), clock)
    crowd = [take(pool) for _ in range(4)]
    for assignment in crowd[:3]:
        assignment.failed("it hung up")
    clock.now = 5
    with take(pool) as probe:
        probe.answered()
    crowd[3].failed("it hung up")
    clock.now += QUIET_S
    with take(pool) as assignment:
        assignment.answered()

    assert told(caplog) == [
        ("WARNING", f"worker fails: {A} (it hung up)"),
        ("WARNING", f"worker fails, leaving it alone: {A} (it hung up)"),
        ("INFO", f"worker is back: {A}"),
    ]


def test_it_can_begin_again(caplog: pytest.LogCaptureFixture) -> None:
    log = WorkerLog(A)
    log.failed("one", 0, 0, broke=False)
    log.answered(QUIET_S, is_back=False)
    log.failed("two", QUIET_S + 1, QUIET_S, broke=False)

    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "WARNING"]


def test_a_worker_s_words_are_one_short_line(caplog: pytest.LogCaptureFixture) -> None:
    WorkerLog(A).failed("no HTTP: \r\nINFO: all is well\x1b[2J" + "x" * 10_000, 0, 0, broke=False)

    ((_, line),) = told(caplog)
    assert line.isprintable()
    assert len(line) <= LONGEST + 100
