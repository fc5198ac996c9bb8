"""`herdgate demo` from the outside: the command, its process, what it prints."""

import json
import subprocess
import sys
from typing import Any

import pytest

HERDGATE = (sys.executable, "-c", "from herdgate.cli import main; main()")


def run_demo(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*HERDGATE, "demo", *options], capture_output=True, text=True, timeout=90, check=False)


@pytest.mark.xdist_group("timing")
def test_a_crowd_that_is_cut_off_is_back_in_order() -> None:
    finished = run_demo("--herd", "400", "--rate", "100", "--once", "--json")

    assert (finished.returncode, finished.stderr) == (0, "")
    (line,) = finished.stdout.splitlines()
    record: dict[str, Any] = json.loads(line)
    assert record["valid"], record["reasons"]
    assert (record["clients"], record["burst"], record["ideal_s"]) == (400, 100, 3.0)
    assert record["behaviours"]["obey"]["back"] == 400
    assert (record["failed"], record["leaked_permits"]) == (0, 0)
    assert record["denied"] > 0
    assert 1.0 <= record["recovery_ratio"] < 1.6
    assert record["attempts_per_client"] < 2.5


@pytest.mark.xdist_group("timing")
def test_people_see_the_recovery_and_what_came_of_it() -> None:
    finished = run_demo("--herd", "60", "--rate", "40", "--once")

    assert (finished.returncode, finished.stderr) == (0, "")
    assert "all 60 back in" in finished.stdout
    assert "waiting" in finished.stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--herd", "0"), "herdgate: --herd: got 0; write a number of clients, 1 or more"),
        (("--rate", "0"), "herdgate: --rate: got 0.0; write admissions per second, more than 0"),
        (("--rate", "nan"), "herdgate: --rate: got nan; write admissions per second, more than 0"),
        (("--rate", "inf"), "herdgate: --rate: got inf; write admissions per second, more than 0"),
    ],
)
def test_a_setting_that_cannot_be_right_is_one_line(options: tuple[str, str], told: str) -> None:
    finished = run_demo(*options, "--once")

    assert (finished.returncode, finished.stdout, finished.stderr.strip()) == (2, "", told)


def test_a_crowd_this_machine_cannot_carry_is_one_line_with_the_numbers() -> None:
    finished = run_demo("--herd", "3000000", "--once")

    assert finished.returncode == 2
    (line,) = finished.stderr.strip().splitlines()
    assert "3,000,000 clients" in line
