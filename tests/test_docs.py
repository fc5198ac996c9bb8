"""The documentation: its examples run, its links lead somewhere, its site builds."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from herdgate_gateway.settings import load, missing_for_serving

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = [
    pytest.param(match[1], id=f"{page.name}:{page.read_text()[: match.start()].count(chr(10)) + 1}")
    for page in PAGES
    for match in re.finditer(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_runs_as_it_stands(example: str, tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(example)
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def settings_in(page: str) -> list[str]:
    """The settings that a page shows."""
    return re.findall(r"^```toml\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)


def test_settings_of_a_gateway_can_be_read_as_they_stand(tmp_path: Path) -> None:
    found = settings_in("gateway.md")
    assert len(found) >= 3
    for settings in found:
        (tmp_path / "herdgate.toml").write_text(settings)
        load({}, tmp_path / "herdgate.toml", {})


def test_settings_of_a_fleet_can_be_served_as_they_stand(tmp_path: Path) -> None:
    found = settings_in("fleet.md")
    assert len(found) >= 3
    for settings in found:
        (tmp_path / "herdgate.toml").write_text(settings)
        assert missing_for_serving(load({}, tmp_path / "herdgate.toml", {})) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_to_files(page: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", page.read_text()) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_scripts_that_a_page_names_exist(page: Path) -> None:
    named = set(re.findall(r"\bscripts/([a-z]+)\b", page.read_text()))
    assert {name for name in named if not (ROOT / "scripts" / name).exists()} == set()


def test_site_builds_without_a_warning(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    build = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "index.html").exists()
