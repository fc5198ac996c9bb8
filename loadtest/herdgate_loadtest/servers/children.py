"""Servers that a run starts: on free ports of 127.0.0.1, and never left behind."""

import random
import shutil
import socket
from contextlib import suppress
from pathlib import Path

__all__ = ["HOST", "child_of", "dies_with_us", "free_port"]

HOST = "127.0.0.1"

_PORTS = range(15_000, 32_000)


def free_port() -> int:
    """One that was free a moment ago.

    Below those that Linux gives to outgoing connections: so it is still free where a server comes back to it.
    """
    while True:
        with socket.socket() as probe, suppress(OSError):  # taken
            probe.bind((HOST, random.choice(_PORTS)))
            return int(probe.getsockname()[1])


def dies_with_us() -> list[str]:
    """What to put before a command, so that it ends when this process does, where the system can (setpriv(1))."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []


def child_of(guardian: int) -> int | None:
    """Process id of the worker behind a guardian; None: there is none.

    Only on Linux: the kernel is asked.
    """
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{guardian}/task/{guardian}/children").read_text("ascii").split()[0])
    return None
