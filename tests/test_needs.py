"""Markers of tests that need a browser or Node."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILE = """
import pytest

@pytest.mark.{marker}
def test_that_needs_something():
    pass
"""


SERVER_FILE = """
from tests.redis_servers import redis_server

def test_that_starts_a_server():
    with redis_server():
        pass
"""


@pytest.mark.parametrize("marker", ["browser", "node"])
@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("true", "1 error")])
def test_unmet_need_skips_a_test_and_is_an_error_in_ci(marker: str, ci: str, outcome: str, tmp_path: Path) -> None:
    told = run(FILE.format(marker=marker), ci, tmp_path)
    assert outcome in told
    assert f"needs {marker}: run scripts/setup" in told


@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("true", "1 failed")])
def test_missing_server_skips_a_test_and_is_an_error_in_ci(ci: str, outcome: str, tmp_path: Path) -> None:
    told = run(SERVER_FILE, ci, tmp_path)
    assert outcome in told
    assert "needs redis-server: run scripts/setup" in told


def run(file: str, ci: str, folder: Path) -> str:
    """What pytest says of one file of tests where no program is found."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    browser\n    node\n")
    (folder / "conftest.py").write_text("from tests.needs import pytest_runtest_setup\n")
    (folder / "test_it.py").write_text(file)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", str(folder)],
        env={"PATH": "", "PYTHONPATH": str(ROOT), "CI": ci},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout
