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


@pytest.mark.parametrize("marker", ["browser", "node"])
@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("true", "1 error")])
def test_unmet_need_skips_a_test_and_is_an_error_in_ci(marker: str, ci: str, outcome: str, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    browser\n    node\n")
    (tmp_path / "conftest.py").write_text("from tests.needs import pytest_runtest_setup\n")
    (tmp_path / "test_it.py").write_text(FILE.format(marker=marker))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", str(tmp_path)],
        env={"PATH": "", "PYTHONPATH": str(ROOT), "CI": ci},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout
    assert f"needs {marker}: run scripts/setup" in done.stdout
