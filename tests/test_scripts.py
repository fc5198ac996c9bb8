"""The scripts and what they install."""

import os
import re
import subprocess
import tomllib
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = [*sorted((ROOT / "scripts").iterdir()), ROOT / ".ci" / "run"]
LOCK_FILES = {"package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "uv.lock", "poetry.lock"}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> list[str]:
    return (ROOT / "constraints.txt").read_text().splitlines()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_script_can_be_run_and_parses(script: Path) -> None:
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True)


@pytest.mark.parametrize("name", ["setup", "demo", "test", "check", "bench", "compliance", "docs"])
def test_every_task_has_a_script(name: str) -> None:
    assert ROOT / "scripts" / name in SCRIPTS


def test_constraints_hold_names_and_versions_only() -> None:
    assert [line for line in pins() if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)] == []


def test_constraints_name_each_package_once() -> None:
    names = [canonical(line.partition("==")[0]) for line in pins()]
    assert len(names) == len(set(names))


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    names = {canonical(match[0]) for line in wanted if (match := re.match(r"[A-Za-z0-9._-]+", line))}
    assert names - {"herdgate"} <= {canonical(line.partition("==")[0]) for line in pins()}


def test_no_lock_file_records_addresses() -> None:
    # The folder may belong to another user than the one who runs the tests.
    listing = ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert files
    assert {Path(file).name for file in files} & LOCK_FILES == set()
