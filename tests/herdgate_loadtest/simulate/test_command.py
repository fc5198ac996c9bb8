"""`herdgate simulate` from the outside: options, output, exit codes, and what it needs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIO = """
clients = 1_000
rate = 100
[behaviours]
obey = 0.9
jitter = 0.1
"""
FIELDS = [
    *("clients", "rate", "burst", "ideal_s", "t95_s", "t100_s", "recovery_ratio", "attempts_per_client"),
    *("peak_admitted_per_s", "denied", "failed", "denial_p99_ms", "leaked_permits", "valid", "reasons", "behaviours"),
]


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    return str(tmp_path / "scenario.toml")


def run(*arguments: str, code: str = "") -> "subprocess.CompletedProcess[str]":
    start = f"{code}\nfrom herdgate.cli import main; main()"
    command = [sys.executable, "-c", start, "simulate", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_json_is_the_result_record_and_nothing_else(scenario: str) -> None:
    first, second = run(scenario, "--json"), run(scenario, "--json")
    assert first.returncode == 0
    assert list(json.loads(first.stdout)) == FIELDS
    assert first.stdout == second.stdout
    assert first.stderr == ""


def test_text_tells_the_figures_of_each_behaviour(scenario: str) -> None:
    done = run(scenario)
    assert done.returncode == 0
    assert done.stdout.startswith("1,000 clients, 100 a second, burst 100: ideal 9.0 s, seed 1\n")
    assert [line.split()[:3] for line in done.stdout.splitlines()[-2:]] == [
        ["jitter", "100", "100"],
        ["obey", "900", "900"],
    ]


def test_crowd_that_never_comes_back_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text("clients = 100\nrate = 10\nuntil_s = 3\n")
    done = run(str(tmp_path / "scenario.toml"))
    assert done.stdout.splitlines()[1] == "95 % back never, all never, recovery ratio infinite"


def test_strategies_are_compared_side_by_side(scenario: str) -> None:
    text = run(scenario, "--compare", "obey,fixed:1, jitter").stdout.splitlines()
    assert [line.split()[0] for line in text[1:]] == ["strategy", "obey", "fixed", "jitter"]
    told = json.loads(run(scenario, "--compare", "obey,jitter", "--json").stdout)
    assert [record["strategy"] for record in told] == ["obey", "jitter"]
    assert [record["behaviours"].keys() for record in told] == [{"obey"}, {"jitter"}]
    assert [record["behaviours"][record["strategy"]]["back"] for record in told] == [1_000, 1_000]


@pytest.mark.parametrize(("name", "begin"), [("picture.svg", "<svg "), ("PAGE.HTML", "<!doctype html>")])
def test_picture_is_written(scenario: str, tmp_path: Path, name: str, begin: str) -> None:
    done = run(scenario, "--picture", str(tmp_path / name), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["clients"] == 1_000
    assert (tmp_path / name).read_text().startswith(begin)


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (["--max-ratio", "1.5", "--max-tries", "3"], 0, ""),
        (["--max-ratio", "1.001"], 1, "herdgate: recovery_ratio 1.0"),
        (["--max-tries", "1.5"], 1, "herdgate: attempts_per_client "),
        (["--max-tries", "4.5", "--compare", "obey,fixed"], 1, "herdgate: fixed: attempts_per_client "),
        (["--max-ratio", "9", "--compare", "hint"], 1, "herdgate: hint: recovery_ratio - is beyond 9"),
    ],
)
def test_figures_beyond_a_bound_give_the_exit_code(scenario: str, options: list[str], code: int, told: str) -> None:
    done = run(scenario, *options)
    assert (done.returncode, bool(done.stderr)) == (code, bool(told))
    assert done.stderr.startswith(told)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--compare", "obey,obay"], "--compare: got obey,obay; write one of obey, "),
        (["--picture", "picture.png"], "--picture: got picture.png; write a name that ends in .svg or .html"),
        (
            ["--picture", "/nowhere/at/all.svg"],
            "--picture: got /nowhere/at/all.svg; name a file in a folder that exists",
        ),
        (["--max-ratio", "0"], "--max-ratio: got 0.0; write a number, more than 0"),
        (["--max-tries", "nan"], "--max-tries: got nan; write a number, more than 0"),
        (["--seed", "1"], "no such option: --seed"),
    ],
)
def test_bad_option_is_one_line_before_anything_is_played(scenario: str, options: list[str], told: str) -> None:
    done = run(scenario, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"herdgate: {told}")
    assert done.stderr.count("\n") == 1


def test_every_fault_of_a_scenario_is_one_line_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text('clients = "many"\nrate = 5\nsede = 1\n')
    done = run(str(file), "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"herdgate: {file}: sede: nobody knows this key here; did you mean seed?",
        f"herdgate: {file}: clients: got 'many'; write a whole number of clients, from 1 to 10_000_000",
    ]


def test_missing_file_is_one_line() -> None:
    done = run("/nowhere/scenario.toml")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr == "herdgate: /nowhere/scenario.toml: cannot be read: No such file or directory\n"


def test_it_needs_no_extra(scenario: str) -> None:
    """Neither of the packages that extras bring, nor a server."""
    hidden = ("yaml", "locust", "uvicorn", "websockets", "httptools", "uvloop", "starlette")
    block = f"import sys; sys.modules.update(dict.fromkeys({hidden!r}))"
    done = run(scenario, "--json", code=block)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_is_a_page_without_a_traceback() -> None:
    done = run("--help")
    assert done.returncode == 0
    for word in ("SCENARIO.toml", "--json", "--compare", "--picture", "--max-ratio", "--max-tries"):
        assert word in done.stdout
