"""The command `herdgate` from the outside: what is installed, what is not, and what people see when they err."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import herdgate

FROM_ELSEWHERE = """
from typing import Annotated, Literal

import typer

group = typer.Typer(no_args_is_help=True)


@group.callback()
def _group() -> None:
    "Several things."


@group.command()
def check(path: str, depth: Annotated[int, typer.Option(min=1)] = 1, how: Literal["fast", "slow"] = "fast") -> None:
    "Check one thing."
    typer.echo(f"checked {path} {depth} {how}")


def single(code: int = 0) -> int:
    "Exit with a code."
    return code


def wrong() -> None:
    "Raise what people can mend."
    from herdgate import ConfigurationError
    raise ConfigurationError("open", -1, "write 0 or more")


def hostile() -> None:
    "Raise what names a file that somebody else has named."
    from herdgate.core.errors import HerdgateError
    raise HerdgateError("\\x1b[2J.toml: cannot be read")


def interrupted() -> None:
    "As if Ctrl-C had been pressed."
    raise KeyboardInterrupt
"""
ENTRY_POINTS = """
[herdgate.commands]
group = herdgate_elsewhere:group
single = herdgate_elsewhere:single
wrong = herdgate_elsewhere:wrong
hostile = herdgate_elsewhere:hostile
interrupted = herdgate_elsewhere:interrupted
lacking = herdgate_lacking.command:command
"""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one more distribution, which brings subcommands."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "herdgate_elsewhere.py").write_text(FROM_ELSEWHERE)
    (folder / "herdgate_lacking").mkdir()
    (folder / "herdgate_lacking" / "__init__.py").touch()
    (folder / "herdgate_lacking" / "command.py").write_text("import a_package_nobody_has\n")
    info = folder / "elsewhere-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


def herdgate_command(
    *arguments: str, folder: Path | None = None, without: str = "nothing"
) -> subprocess.CompletedProcess[str]:
    """Run it, as where the package `without` is not installed."""
    code = f"import sys; sys.modules[{without!r}] = None; from herdgate.cli import main; main()"
    environment = dict(os.environ, COLUMNS="100") | ({"PYTHONPATH": str(folder)} if folder else {})
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=60)


def test_subcommand_whose_packages_are_missing_is_listed_with_what_to_install() -> None:
    shown = herdgate_command("--help", without="rich")

    assert (shown.returncode, shown.stderr) == (0, "")
    assert re.search(r"^  demo +needs more packages: pip install 'herdgate\[loadtest\]'$", shown.stdout, re.MULTILINE)


@pytest.mark.parametrize("arguments", [(), ("--herd", "20", "--once"), ("--help",), ("more", "words")])
def test_running_it_tells_what_to_install_in_one_line(arguments: tuple[str, ...]) -> None:
    ended = herdgate_command("demo", *arguments, without="rich")

    told = "herdgate: demo needs more packages: pip install 'herdgate[loadtest]'\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", told)


def test_each_package_has_an_extra_of_its_own_name(elsewhere: Path) -> None:
    ended = herdgate_command("lacking", folder=elsewhere)

    assert ended.stderr == "herdgate: lacking needs more packages: pip install 'herdgate[lacking]'\n"
    assert "demo" in herdgate_command("--help", folder=elsewhere).stdout


def test_entry_point_that_names_nothing_is_an_error_of_ours_and_no_hint(tmp_path: Path) -> None:
    info = tmp_path / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[herdgate.commands]\nbroken = herdgate_loadtest.nowhere:command\n")

    assert "ModuleNotFoundError" in herdgate_command("--help", folder=tmp_path).stderr


def test_entry_point_may_be_a_group_of_subcommands(elsewhere: Path) -> None:
    assert "Several things." in herdgate_command("--help", folder=elsewhere).stdout
    ended = herdgate_command("group", "check", "here", "--depth", "2", folder=elsewhere)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "checked here 2 fast\n", "")


@pytest.mark.parametrize("code", [0, 3])
def test_number_that_a_subcommand_returns_is_the_exit_code(elsewhere: Path, code: int) -> None:
    ended = herdgate_command("single", "--code", str(code), folder=elsewhere)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", "")


def test_ctrl_c_says_nothing(elsewhere: Path) -> None:
    ended = herdgate_command("interrupted", folder=elsewhere)
    assert (ended.returncode, ended.stdout, ended.stderr.strip()) == (130, "", "")


def test_ctrl_c_while_subcommands_are_loaded_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "herdgate_slow.py").write_text("raise KeyboardInterrupt\n")
    info = tmp_path / "slow-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[herdgate.commands]\nslow = herdgate_slow:command\n")
    ended = herdgate_command("--help", folder=tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_errors_reach_a_terminal_without_what_it_would_obey(elsewhere: Path) -> None:
    ended = herdgate_command("hostile", folder=elsewhere)
    assert (ended.returncode, ended.stderr) == (2, "herdgate: \\x1b[2J.toml: cannot be read\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
def test_output_that_cannot_be_written_is_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        program = [sys.executable, "-m", "herdgate", "--help"]
        ended = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (2, "herdgate: No space left on device: write to where there is room\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("wrong", "open: got -1; write 0 or more"),
        ("nix", "no such command 'nix'; see herdgate --help"),
        ("--nix", "no such option: --nix; see herdgate --help"),
        ("demo --nix", "no such option: --nix; see herdgate demo --help"),
        ("demo --herd", "option '--herd' requires an argument; see herdgate --help"),
        ("demo --herd many", "--herd: got many; input should be a valid integer; see herdgate demo --help"),
        ("demo --rate=fast", "--rate: got fast; input should be a valid number; see herdgate demo --help"),
        ("demo --rate -x", "--rate: got -x; input should be a valid number; see herdgate demo --help"),
        ("demo -1", "got unexpected extra argument(s) (-1); see herdgate demo --help"),
        ("demo --rate -1 --nix", "no such option: --nix; see herdgate demo --help"),
        ("demo more", "got unexpected extra argument(s) (more); see herdgate demo --help"),
        ("group nix", "no such command 'nix'; see herdgate group --help"),
        ("group check", "missing argument 'path'; see herdgate group check --help"),
        ("group check a --depth 0", "--depth: got 0; input should be greater than or equal to 1; see"),
        ("group check a --how slowly", "--how: got slowly; 'slowly' is not one of 'fast', 'slow'; see"),
    ],
)
def test_what_people_can_mend_is_one_line(elsewhere: Path, arguments: str, told: str) -> None:
    ended = herdgate_command(*arguments.split(), folder=elsewhere)

    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"herdgate: {told}")


@pytest.mark.parametrize(("arguments", "shown"), [((), "demo"), (("group",), "check")])
def test_without_a_subcommand_there_is_help(elsewhere: Path, arguments: tuple[str, ...], shown: str) -> None:
    ended = herdgate_command(*arguments, folder=elsewhere)

    assert ended.returncode == 2
    assert shown in ended.stdout + ended.stderr
    assert "herdgate: " not in ended.stderr


@pytest.mark.parametrize("start", [("-m", "herdgate"), ("-c", "from herdgate.cli import main; main()")])
def test_version_is_shown(start: tuple[str, str]) -> None:
    command = [sys.executable, *start, "--version"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"herdgate {herdgate.__version__}\n", "")
