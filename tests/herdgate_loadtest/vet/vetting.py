"""Clients out of settings, and the command run, for the tests of `herdgate vet`."""

import os
import subprocess
import sys
from typing import Any

from herdgate_loadtest.vet.clients import Known, client_in
from herdgate_loadtest.vet.model import Client
from herdgate_loadtest.vet.rules import findings

__all__ = ["SOUND", "client", "errors", "known", "run_vet", "warnings_of"]

SOUND: dict[str, Any] = {
    "strategy": "full",
    "initial_interval_ms": 1000,
    "multiplier": 2,
    "max_interval_ms": 30_000,
    "min_delay_ms": 100,
    "reset_on": "stable",
    "reset_after_ms": 30_000,
    "honour_retry_after": True,
    "hint_jitter_ms": 500,
    "fatal_close_codes": [1002, 1003, 1007, 1008, 1009, 1010],
    "fatal_statuses": [400, 401, 403, 404, 405, 410, 426],
}
"""Settings of which nobody has anything to say."""


def known(settings: dict[str, Any], preset: str | None = None) -> Known:
    """Settings under their names, read."""
    return client_in({name: (name, value) for name, value in settings.items()}, preset)


def client(**settings: Any) -> Client:
    """A client with these settings."""
    return known(settings or {"client_id": "c"}).client


def errors(**settings: Any) -> set[str]:
    """The rules that call a client unsafe."""
    return {finding.rule for finding in findings(client(**settings)) if finding.severity == "error"}


def warnings_of(**settings: Any) -> set[str]:
    """The rules that warn."""
    return {finding.rule for finding in findings(client(**settings)) if finding.severity == "warning"}


def run_vet(
    *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the command as a process."""
    command = [sys.executable, "-c", "from herdgate.cli import main; main()", "vet", *arguments]
    return subprocess.run(
        command, input=stdin, capture_output=True, timeout=60, check=False, env={**os.environ, **(env or {})}
    )
