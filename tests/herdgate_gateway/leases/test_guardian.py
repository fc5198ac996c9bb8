"""A parent that tells of its worker's end."""

import asyncio
import os
import signal
import sys

import pytest

from herdgate_gateway.leases.guardian import LIVES_FD, guard, tell_guardian

NAME = "vm-7003"
TELL = "from herdgate_gateway.leases.guardian import tell_guardian; tell_guardian('one'); tell_guardian('two');"
WAIT = "import time; print('up', flush=True); time.sleep(60)"


async def run(script: str) -> tuple[int, list[str]]:
    """Exit code, and the lives that were declared dead."""
    dead: list[str] = []

    async def declare_dead(inc: str) -> None:
        dead.append(inc)

    code = await asyncio.wait_for(guard(NAME, [sys.executable, "-c", script], declare_dead), 30)
    return code, dead


async def test_every_life_of_a_worker_that_ends_is_declared_dead() -> None:
    assert await run(f"{TELL} raise SystemExit(3)") == (3, ["two", "one"])


async def test_a_killed_worker_is_declared_dead() -> None:
    assert await run(f"{TELL} import os; os.kill(os.getpid(), 9)") == (128 + signal.SIGKILL, ["two", "one"])


def kill(number: int) -> str:
    return f"import os; os.kill(os.getpid(), {number})"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (f"{TELL} {kill(signal.SIGKILL)}", ["worker vm-7003 was killed by SIGKILL; declared dead"]),
        (f"{TELL} {kill(signal.SIGSEGV)}", ["worker vm-7003 was killed by SIGSEGV; declared dead"]),
        (
            f"{TELL} {kill(signal.SIGRTMIN + 1)}",
            [f"worker vm-7003 was killed by signal {signal.SIGRTMIN + 1}; declared dead"],
        ),
        (kill(signal.SIGKILL), ["worker vm-7003 was killed by SIGKILL"]),
        (f"{TELL} raise SystemExit(3)", ["worker vm-7003 ended with exit code 3; declared dead"]),
        (TELL, []),
        ("raise SystemExit(2)", []),  # it has said by itself what is wrong
    ],
    ids=lambda value: str(value)[-40:],
)
async def test_how_a_worker_has_ended_is_a_line(script: str, told: list[str], caplog: pytest.LogCaptureFixture) -> None:
    await run(script)
    assert caplog.messages == told


async def test_a_life_that_cannot_be_declared_dead_keeps_neither_the_others_nor_the_exit_code(
    caplog: pytest.LogCaptureFixture,
) -> None:
    dead: list[str] = []

    async def declare_dead(inc: str) -> None:
        if inc == "two":
            raise TimeoutError
        dead.append(inc)

    code = await asyncio.wait_for(guard(NAME, [sys.executable, "-c", f"{TELL} raise SystemExit(3)"], declare_dead), 30)
    assert (code, dead) == (3, ["one"])
    assert caplog.messages == [
        "the table does not answer: others will notice the end of two by its silence",
        "worker vm-7003 ended with exit code 3",
    ]


async def test_who_has_inherited_the_pipe_is_not_waited_for() -> None:
    waiting = "[sys.executable, '-c', 'import time; time.sleep(20)']"
    child = f"import subprocess, sys; subprocess.Popen({waiting}, close_fds=False)"
    assert await asyncio.wait_for(run(f"{TELL} {child}"), 10) == (0, ["two", "one"])


async def test_a_worker_that_never_lived_leaves_nobody_to_declare() -> None:
    assert await run("pass") == (0, [])


async def test_signals_are_passed_on() -> None:
    script = f"{TELL} import signal, os; os.kill(os.getppid(), signal.SIGTERM); {WAIT}"

    assert await run(script) == (128 + signal.SIGTERM, ["two", "one"])


def test_without_a_guardian_nobody_is_told() -> None:
    tell_guardian("one", {})


def test_a_guardian_that_is_gone_is_no_fault() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        tell_guardian("one", {LIVES_FD: str(writing)})
    finally:
        os.close(writing)


async def test_a_command_that_is_not_there_is_an_error() -> None:
    async def declare_dead(inc: str) -> None:
        raise AssertionError(inc)

    with pytest.raises(FileNotFoundError):
        await guard(NAME, ["/nowhere/at/all"], declare_dead)


async def test_sign_that_comes_when_all_has_ended_well_does_not_change_the_exit_code() -> None:
    script = """
import asyncio, os, signal, sys
from herdgate_gateway.leases.guardian import heed_no_more
async def work():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print)
    heed_no_more()
asyncio.run(work())
os.kill(os.getpid(), signal.SIGTERM)
"""
    assert await run(script) == (0, [])
