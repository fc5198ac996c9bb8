"""One process of the demo: what it says, and how its end is told."""

import os
import time

import pytest

from herdgate_loadtest.demo.process import Process, listening
from herdgate_loadtest.demo.worker import start_worker
from herdgate_loadtest.errors import CrowdError
from tests.servers import poll


def start(name: str, *arguments: str) -> Process:
    with listening() as listener:
        return Process(name, arguments, [listener])


def has_ended(process: Process) -> bool:
    try:
        process.check()
    except CrowdError:
        return True
    return False


def test_last_line_of_a_process_is_told_with_how_it_ended(capfd: pytest.CaptureFixture[str]) -> None:
    with start("worker 1", "herdgate_loadtest.demo.worker", "77") as process:
        poll(lambda: has_ended(process), "it ends", within_s=30)
        with pytest.raises(CrowdError) as told:
            process.check()

    expected = "worker 1 has ended with exit code 1 (OSError: [Errno 9] Bad file descriptor): start the demo again"
    assert str(told.value) == expected
    assert capfd.readouterr() == ("", "")


def test_what_a_process_said_is_told_once_it_is_over(capfd: pytest.CaptureFixture[str]) -> None:
    timeit = ("timeit", "-n1", "-r1", "-s", "print('before', flush=True)", "import time; time.sleep(60)")
    with start("timer", *timeit) as timer:
        poll(lambda: "before" in timer._said(), "it has begun", within_s=30)
        timer.check()
        assert capfd.readouterr() == ("", "")

    assert capfd.readouterr().err.strip() == "before"


async def test_worker_answers_while_it_runs_and_ends_with_its_block() -> None:
    with start_worker(1) as worker:
        assert await worker.ask(f"/stats?since={time.monotonic()!r}") == {"admitted_at": []}
        worker.check()
    with pytest.raises(ProcessLookupError):
        os.kill(worker.pid, 0)


async def test_what_is_no_answer_is_told_in_one_line() -> None:
    with start_worker(1) as worker:
        with pytest.raises(CrowdError, match=r"^worker 1 does not answer \(.*\): start the demo again$"):
            await worker.ask("/nowhere")
        with pytest.raises(CrowdError, match=r"^worker 1 does not answer \(status 500\): start the demo again$"):
            await worker.ask("/stats?since=never")
