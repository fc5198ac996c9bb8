"""Which worker takes the next arrival."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate import ConfigurationError
from herdgate_gateway.breaker import BreakerSettings
from herdgate_gateway.workers import GONE_S, SILENCE_S, Assignment, WorkerPool

A, B, C = "ws://127.0.0.1:9001", "ws://127.0.0.1:9002", "ws://[::1]:9003"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def take(pool: WorkerPool) -> Assignment:
    assignment = pool.choose()
    assert assignment is not None
    return assignment


def counts(pool: WorkerPool) -> dict[str, tuple[int, int]]:
    return {worker.url: (worker.open, worker.pending) for worker in pool.snapshot()}


def fail(pool: WorkerPool, times: int = 1) -> None:
    for _ in range(times):
        with take(pool) as assignment:
            assignment.failed("no")


def test_the_one_with_the_fewest_sockets_is_next_and_equals_take_turns() -> None:
    pool = WorkerPool([A, B, C])
    taken = [take(pool) for _ in range(6)]
    assert counts(pool) == {A: (0, 2), B: (0, 2), C: (0, 2)}

    for assignment in taken:
        assignment.connected()
    freed = taken[3]
    freed.release()

    assert counts(pool)[freed.worker.url] == (1, 0)
    assert take(pool).worker is freed.worker


def test_turns_are_taken_when_nobody_stays() -> None:
    pool = WorkerPool([A, B])
    seen = []
    for _ in range(4):
        with take(pool) as assignment:
            seen.append(assignment.worker.url)

    assert seen == [A, B, A, B]


def test_an_assignment_counts_once_however_it_ends() -> None:
    pool = WorkerPool([A])
    with take(pool) as assignment:
        assignment.connected()
        assignment.connected()
        assert counts(pool) == {A: (1, 0)}
        assignment.release()
    assignment.release()
    assignment.connected()

    assert counts(pool) == {A: (0, 0)}


def test_an_assignment_ends_with_its_block_when_that_fails() -> None:
    pool = WorkerPool([A])
    with pytest.raises(ZeroDivisionError), take(pool):
        raise ZeroDivisionError

    assert counts(pool) == {A: (0, 0)}


def test_host_and_port_are_read_from_the_url() -> None:
    for url, place in {C: ("::1", 9003), "ws://worker": ("worker", 80), "ws://w:1/": ("w", 1)}.items():
        worker = take(WorkerPool([url])).worker
        assert (worker.host, worker.port) == place


def test_a_broken_worker_is_left_alone_until_a_probe_succeeds(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    pool = WorkerPool([A], BreakerSettings(failures=3, open_s=5, ramp_s=0), clock)
    with caplog.at_level(logging.INFO):
        fail(pool, 3)
        assert pool.choose() is None
        assert pool.snapshot()[0].state == "broken"
        clock.now = 5
        probe = take(pool)
        assert pool.choose() is None, "one at a time"
        probe.answered()
        probe.release()

    assert pool.snapshot()[0].state == "up"
    assert pool.snapshot()[0].failures == 3
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING", "INFO"]
    assert take(pool).worker.url == A


def test_a_probe_whose_client_leaves_is_no_verdict() -> None:
    clock = Clock()
    pool = WorkerPool([A], BreakerSettings(failures=1, open_s=5), clock)
    fail(pool)
    clock.now = 5
    take(pool).release()

    assert pool.snapshot()[0].state == "broken"
    assert pool.choose() is not None


def test_the_others_take_over_and_a_returning_worker_is_not_flooded() -> None:
    clock = Clock()
    pool = WorkerPool([A, B], BreakerSettings(failures=1, open_s=5, ramp_s=10), clock)
    held = [take(pool) for _ in range(2)]
    broken = held[0].worker
    held[0].failed("no")
    for assignment in held:
        assignment.release()
    held = [take(pool) for _ in range(50)]
    assert broken.load == 0
    clock.now = 5
    probe = take(pool)
    assert probe.worker is broken
    probe.connected()

    clock.now = 6
    held += [take(pool) for _ in range(40)]

    assert 1 <= broken.pending <= 5, "a tenth of the arrivals, though it has the fewest sockets"


@pytest.mark.parametrize(
    "url",
    [
        "wss://a:1", "http://a:1", "a:1", "", "ws://", "ws://a:0", "ws://a:99999", "ws://a:b", "ws://a:1/path", "ws://a:1?x",
        "ws://u@a:1", "ws://u:p@a:1", " ws://a:1", "ws://[::1:1", 7, None,
    ],
)  # fmt: skip
def test_what_is_no_worker_is_named(url: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"workers: got .*ws://host:port"):
        WorkerPool([url])


def test_a_worker_is_named_once() -> None:
    with pytest.raises(ConfigurationError, match="once"):
        WorkerPool([A, A])
    with pytest.raises(ConfigurationError, match="once"):
        WorkerPool([A, A + "/"])


def test_one_text_is_no_list() -> None:
    with pytest.raises(ConfigurationError, match="list"):
        WorkerPool(A)


def test_replacing_keeps_who_stays_and_lets_who_goes_finish() -> None:
    pool = WorkerPool([A, B], BreakerSettings(failures=1))
    first, second = take(pool), take(pool)
    first.connected()
    second.connected()

    pool.replace([B, C])

    assert counts(pool) == {A: (1, 0), B: (1, 0), C: (0, 0)}
    assert [worker.state for worker in pool.snapshot()] == ["removed", "up", "up"]
    assert {take(pool).worker.url for _ in range(4)} == {B, C}
    first.release()
    assert A not in counts(pool), "nothing of it is left"


def test_one_that_comes_back_has_the_count_and_the_breaker_it_had() -> None:
    clock = Clock()
    pool = WorkerPool([A, B], BreakerSettings(failures=1, open_s=1e3), clock)
    held = [take(pool) for _ in range(4)]
    for assignment in held:
        assignment.connected()
    held[1].failed("no")
    broken = held[1].worker.url
    for urls in ([A], [B], [A, B], []):
        pool.replace(urls)
        clock.now += GONE_S

    pool.replace([A, B])

    assert counts(pool) == {A: (2, 0), B: (2, 0)}
    assert {worker.url: worker.state for worker in pool.snapshot()}[broken] == "broken"


def test_one_that_is_gone_is_forgotten_after_a_while() -> None:
    clock = Clock()
    pool = WorkerPool([A, B], clock=clock)
    pool.replace([A])
    clock.now = GONE_S - 1
    pool.replace([A])
    assert pool.choose(B) is not None
    pool = WorkerPool([A, B], clock=clock)
    pool.replace([A])
    clock.now += GONE_S
    pool.replace([A])
    assert pool.choose(B) is None


def test_a_worker_that_lets_somebody_wait_comes_behind_its_equals() -> None:
    clock = Clock()
    pool = WorkerPool([A, B], clock=clock)
    silent, quick = take(pool), take(pool)
    clock.now = 0.5
    quick.connected()
    assert take(pool).worker is silent.worker, "not for long yet"
    clock.now = SILENCE_S
    taken = [take(pool).worker for _ in range(3)]

    assert taken == [quick.worker, quick.worker, silent.worker], "until that has more sockets"


@pytest.mark.parametrize(("after_s", "failures"), [(0, 0), (SILENCE_S - 0.1, 0), (SILENCE_S, 5)])
def test_a_client_that_leaves_a_silent_worker_is_its_failure_after_a_while(after_s: float, failures: int) -> None:
    clock = Clock()
    pool = WorkerPool([A], BreakerSettings(failures=5), clock)
    crowd = [take(pool) for _ in range(5)]
    clock.now = after_s
    for assignment in crowd:
        with assignment:
            assignment.left()

    (seen,) = pool.snapshot()
    assert (seen.failures, seen.state) == (failures, "broken" if failures else "up")


def test_replacing_with_something_wrong_changes_nothing() -> None:
    pool = WorkerPool([A])
    with pytest.raises(ConfigurationError):
        pool.replace([B, "nonsense"])

    assert list(counts(pool)) == [A]


def test_no_workers_take_nobody() -> None:
    assert WorkerPool([]).choose() is None


@given(
    st.lists(st.tuples(st.sampled_from(["take", "connect", "fail", "answer", "leave", "release"]), st.integers(0, 5)))
)
def test_counts_come_back_to_nothing(steps: list[tuple[str, int]]) -> None:
    pool = WorkerPool([A, B], BreakerSettings(failures=2, open_s=0, ramp_s=0))
    held: list[Assignment] = []
    for what, index in steps:
        if what == "take":
            held += [assignment] if (assignment := pool.choose()) else []
        elif held:
            assignment = held[index % len(held)]
            doing: dict[str, Callable[[], None]] = {
                "connect": assignment.connected,
                "fail": partial(assignment.failed, "no"),
                "leave": assignment.left,
                "answer": assignment.answered,
                "release": assignment.release,
            }
            doing[what]()
        assert all(worker.open >= 0 and worker.pending >= 0 for worker in pool.snapshot())
    for assignment in held:
        assignment.release()

    assert counts(pool) == {A: (0, 0), B: (0, 0)}
