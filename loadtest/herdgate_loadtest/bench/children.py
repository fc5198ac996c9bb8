"""Servers of others that a benchmark starts: on free ports of 127.0.0.1, and never left behind."""

import shutil
import socket

__all__ = ["HOST", "dies_with_us", "free_port"]

HOST = "127.0.0.1"


def free_port() -> int:
    """One that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def dies_with_us() -> list[str]:
    """What to put before a command, so that it ends when this process does, where the system can (setpriv(1))."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []
