"""`herdgate demo` from the outside: the command, its process, what it prints."""

import json
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from tests.herdgate_loadtest.demo.demos import HERDGATE, is_over, run_demo, run_valid_demo
from tests.servers import poll

RATES = "write admissions per second, from 1e-09 to 1,000,000,000"
FLEET = ("worker 1", "worker 2", "the gateway")
"""In the order in which they are started."""


@contextmanager
def running_demo(*options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, psutil.Process]]]:
    """The demo, and the processes of its fleet by name."""
    command = [*HERDGATE, "demo", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        try:
            poll(lambda: len(psutil.Process(demo.pid).children()) == len(FLEET), "the fleet is started", within_s=30)
            children = sorted(psutil.Process(demo.pid).children(), key=lambda child: child.pid)
            yield demo, dict(zip(FLEET, children, strict=True))
        finally:
            demo.kill()


def wait_until_clients_are_in(gateway: psutil.Process) -> None:
    poll(lambda: len(gateway.net_connections()) > 20, "clients are in", within_s=30)


@pytest.mark.xdist_group("timing")
def test_a_crowd_that_is_cut_off_is_back_in_order() -> None:
    finished = run_valid_demo("--herd", "400", "--rate", "100", "--once", "--json")

    assert (finished.returncode, finished.stderr) == (0, "")
    (line,) = finished.stdout.splitlines()
    record: dict[str, Any] = json.loads(line)
    assert record["valid"], record["reasons"]
    assert (record["clients"], record["burst"], record["ideal_s"]) == (400, 5, 3.95)
    assert record["behaviours"]["obey"]["back"] == 400
    assert (record["failed"], record["leaked_permits"]) == (0, 0)
    assert record["denied"] > 0
    assert 1.0 <= record["recovery_ratio"] < 1.6
    assert record["attempts_per_client"] < 2.5


@pytest.mark.xdist_group("timing")
def test_people_see_the_recovery_and_what_came_of_it() -> None:
    finished = run_valid_demo("--herd", "60", "--rate", "40", "--once")

    assert (finished.returncode, finished.stderr) == (0, "")
    assert "60 of 60 in" in finished.stdout
    assert "\nall 60 clients are back in" in finished.stdout
    assert "waiting" in finished.stdout
    assert finished.stdout.startswith("a gateway in front of 2 workers\n")


@pytest.mark.parametrize("name", FLEET)
def test_process_that_is_killed_ends_the_demo_in_one_line(name: str) -> None:
    with running_demo("--herd", "400", "--rate", "1", "--once", "--json") as (demo, fleet):
        fleet[name].kill()
        out, err = demo.communicate(timeout=60)

    told = f"herdgate: {name} has ended by signal 9: start the demo again\n"
    assert (demo.returncode, out, err) == (1, "", told)


@pytest.mark.parametrize("name", FLEET)
def test_process_that_dies_in_the_middle_ends_the_demo_and_all_the_others(name: str) -> None:
    with running_demo("--herd", "400", "--rate", "20", "--once") as (demo, fleet):
        wait_until_clients_are_in(fleet["the gateway"])
        fleet[name].kill()
        _, err = demo.communicate(timeout=60)

        assert (demo.returncode, err) == (1, f"herdgate: {name} has ended by signal 9: start the demo again\n")
        assert all(is_over(process) for process in fleet.values())


def test_ctrl_c_ends_the_demo_which_says_so_at_the_start() -> None:
    with running_demo("--herd", "400", "--rate", "20") as (demo, fleet):
        assert demo.stdout is not None
        readable, _, _ = select.select([demo.stdout], [], [], 30)
        assert readable
        first = demo.stdout.readline()
        wait_until_clients_are_in(fleet["the gateway"])
        demo.send_signal(signal.SIGINT)
        _, err = demo.communicate(timeout=60)
        assert (first, demo.returncode, err) == ("a gateway in front of 2 workers; Ctrl-C ends it\n", 130, "")
        assert all(is_over(process) for process in fleet.values())


def test_fleet_ends_with_the_demo_however_that_ends() -> None:
    with running_demo("--herd", "400", "--rate", "20", "--once") as (demo, fleet):
        wait_until_clients_are_in(fleet["the gateway"])
        demo.kill()
        poll(lambda: all(is_over(process) for process in fleet.values()), "all end", within_s=30)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--herd", "0"), "herdgate: --herd: got 0; write a number of clients, 1 or more"),
        (("--rate", "0"), f"herdgate: --rate: got 0.0; {RATES}"),
        (("--rate", "-1"), f"herdgate: --rate: got -1.0; {RATES}"),
        (("--rate", "nan"), f"herdgate: --rate: got nan; {RATES}"),
        (("--rate", "inf"), f"herdgate: --rate: got inf; {RATES}"),
        (("--rate", "1e12"), f"herdgate: --rate: got 1000000000000.0; {RATES}"),
        (("--rate", "1e-12"), f"herdgate: --rate: got 1e-12; {RATES}"),
    ],
)
def test_a_setting_that_cannot_be_right_is_one_line(options: tuple[str, str], told: str) -> None:
    finished = run_demo(*options, "--once")

    assert (finished.returncode, finished.stdout, finished.stderr.strip()) == (2, "", told)


@pytest.mark.parametrize("herd", ["3000000", "3000000000000"])
def test_a_crowd_this_machine_cannot_carry_is_one_line_with_the_numbers(herd: str) -> None:
    finished = run_demo("--herd", herd, "--once")

    assert finished.returncode == 2
    (line,) = finished.stderr.strip().splitlines()
    assert f"{int(herd):,} clients" in line
