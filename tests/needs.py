"""Tests that need a browser or Node say so with a marker: `@pytest.mark.browser`, `@pytest.mark.node`.

Those that need a Redis just start one. Where there is none they are skipped, and the reason is printed. With CI=true
they fail instead, so that a green run has run everything.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

__all__ = ["chromium", "node", "pytest_runtest_setup", "unmet"]

NODE_PACKAGES = Path(__file__).parent / "node" / "node_modules"


def chromium() -> str | None:
    """Path of a Chromium to drive, None if there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def node() -> str | None:
    """Path of a Node that has the packages the tests use, None if there is none."""
    return shutil.which("node") if (NODE_PACKAGES / "ws").is_dir() else None


NEEDS: dict[str, Callable[[], str | None]] = {"browser": chromium, "node": node}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or fail with CI=true, a test whose need is not met."""
    for marker, find in NEEDS.items():
        if item.get_closest_marker(marker) and find() is None:
            unmet(marker)


def unmet(need: str) -> NoReturn:
    """Skip the running test, or fail it with CI=true: it needs what is not here."""
    reason = f"needs {need}: run scripts/setup"
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
