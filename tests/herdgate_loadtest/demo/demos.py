"""`herdgate demo` as a process, for tests."""

import subprocess
import sys
from typing import Any

import psutil

__all__ = ["HERDGATE", "is_over", "run_demo", "run_valid_demo"]

HERDGATE = (sys.executable, "-c", "from herdgate.cli import main; main()")


def run_demo(*options: str, within_s: float = 90, **settings: Any) -> subprocess.CompletedProcess[str]:
    """The demo to its end; settings are those of `subprocess.run`."""
    command = [*HERDGATE, "demo", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=within_s, check=False, **settings)


def run_valid_demo(*options: str) -> subprocess.CompletedProcess[str]:
    """Run it again, up to twice, where this machine was too busy: then it says itself that the run proves nothing."""
    for _ in range(2):
        finished = run_demo(*options)
        if finished.returncode != 1 or "the generator's scheduler lag" not in finished.stdout:
            return finished
    return run_demo(*options)


def is_over(process: psutil.Process) -> bool:
    """It has ended, waited for or not."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
