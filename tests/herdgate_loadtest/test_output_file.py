"""Files that reports are written to: what is wrong is said before a run, or without a traceback after it."""

from pathlib import Path

import pytest

from herdgate_loadtest.errors import ConfigurationError, LoadtestError
from herdgate_loadtest.output_file import check_output, write_output


@pytest.mark.parametrize("name", ["none/page.html", ".", "page.html/x", "n" * 300])
def test_file_that_cannot_be_is_said_at_once_and_the_option_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "page.html").touch()
    with pytest.raises(ConfigurationError, match=r"^--report: got [ -~]+; name a file in a folder that exists"):
        check_output("--report", str(tmp_path / name))


def test_checking_makes_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "old.html").write_text("old")
    for name in ("old.html", "new.html"):
        check_output("--report", str(tmp_path / name))
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_disk_that_is_full_is_one_line() -> None:
    with pytest.raises(LoadtestError) as raised:
        write_output("--report", "/dev/full", "page")
    assert str(raised.value) == "--report: /dev/full cannot be written (No space left on device); name another file"


def test_file_is_replaced(tmp_path: Path) -> None:
    for text in ("longer", "new"):
        write_output("--report", str(tmp_path / "page.html"), text)
    assert (tmp_path / "page.html").read_text() == "new"
