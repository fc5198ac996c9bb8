"""The models of the lease protocol, their runner and their README name the same safeguards."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODELS = sorted((ROOT / "models").glob("*.pml"))
README = (ROOT / "models" / "README.md").read_text()
RUNNER = ROOT / "scripts" / "models"
# The bounds of a search; every other macro that a model asks for removes a safeguard.
BOUNDS = {"INCS", "FAULTS", "HANDOVERS", "RIGHT", "WAIT"}


def asked_for(model: Path) -> set[tuple[str, str]]:
    macros = re.findall(r"^\s*#ifn?def\s+(\w+)", model.read_text(), re.MULTILINE)
    return {(model.stem, macro) for macro in macros if macro not in BOUNDS}


def listed() -> set[tuple[str, str]]:
    return set(re.findall(r'^    "(\w+) ([A-Z_]+)(?: \d)+(?: [A-Z_]+)?"$', RUNNER.read_text(), re.MULTILINE))


def test_runner_removes_every_safeguard_of_the_models() -> None:
    assert len(MODELS) == 2
    assert listed() == set().union(*map(asked_for, MODELS))


@pytest.mark.parametrize(("model", "macro"), sorted(listed()))
def test_readme_names_the_safeguard(model: str, macro: str) -> None:
    section = README.split(f"### {model}.pml\n", 1)[1].split("\n#", 1)[0]
    assert f"`{macro}`" in section


def test_runner_refuses_unknown_bounds() -> None:
    done = subprocess.run([RUNNER, "huge"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "models: got huge; write large for larger bounds, or nothing for small ones\n"


def test_runner_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "dirname").symlink_to("/usr/bin/dirname")
    done = subprocess.run(
        ["/bin/bash", RUNNER], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "models: spin is missing; install it with: apt-get install spin gcc libc6-dev\n"
