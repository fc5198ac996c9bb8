"""What a tree of processes has taken so far: CPU time and memory.

Rules: CPU time is that of the process's own clock (clock_getcpuclockid(3)): in nanoseconds, and with the threads that
have ended. A process that ends would take its account with it, so it is an error.
"""

import resource
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from herdgate_loadtest.errors import CrowdError

__all__ = ["cpu_clocks", "cpu_s_since", "resident_bytes", "tree_of"]

_PROC = Path("/proc")
_PAGE = resource.getpagesize()
_SCHED = 2  # CPUCLOCK_SCHED of the kernel: all that the process's threads have run


def tree_of(pid: int) -> list[int]:
    """The process and all that come from it."""
    tree = [pid]
    for parent in tree:
        with suppress(FileNotFoundError, ProcessLookupError):
            for task in (_PROC / str(parent) / "task").iterdir():
                tree += map(int, (task / "children").read_text().split())
    return tree


def cpu_clocks(pid: int) -> dict[int, float]:
    """CPU seconds so far of each process of the tree.

    Raises:
        CrowdError: one of them has ended.
    """
    try:
        return {member: time.clock_gettime((~member << 3) | _SCHED) for member in tree_of(pid)}
    except OSError as error:
        raise CrowdError("a server has ended while it was measured: run it again") from error


def cpu_s_since(pid: int, before: Mapping[int, float]) -> float:
    """CPU seconds that the tree has taken since `before`.

    Raises:
        CrowdError: one of its processes has ended.
    """
    now = cpu_clocks(pid)
    if before.keys() - now.keys():
        raise CrowdError("a process of a server has ended while it was measured: run it again")
    return sum(taken - before.get(member, 0.0) for member, taken in now.items())


def resident_bytes(pid: int) -> int:
    """Resident memory of the tree."""
    return sum(int((_PROC / str(member) / "statm").read_text().split()[1]) for member in tree_of(pid)) * _PAGE
