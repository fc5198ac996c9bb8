"""A shell as PID 1 of the container, between the platform and this process.

A platform tells PID 1 to stop, by SIGTERM. A shell that waits for what it has started passes none on, so that nobody
drains, and all is killed in the end. A shell that was replaced by what it started (`exec`) is not there any more.

Linux only, by proc(5): where there is no /proc, or it may not be read, there is nothing to say.
"""

import logging
import os
from pathlib import Path, PurePosixPath

__all__ = ["shell_above", "warn_of_shell"]

_SHELLS = frozenset({"ash", "bash", "busybox", "dash", "ksh", "sh", "zsh"})
_PROC = Path("/proc")


def warn_of_shell(logger: logging.Logger) -> None:
    """Say in one line that SIGTERM will not come, and what to do, if a shell is in its way."""
    if (shell := shell_above(os.getpid())) is not None:
        logger.warning(
            "PID 1 is a shell (%s), which passes no SIGTERM on: this process will be killed instead of drained; start"
            ' it with exec, or by a command without a shell (CMD ["herdgate", ...])',
            shell,
        )


def shell_above(pid: int, proc: Path = _PROC) -> str | None:
    """The shell that is PID 1 and has started this process, or who did; None: none has.

    Args:
        proc: where the processes are shown.
    """
    try:
        if not _descends(pid, proc):
            return None
        # Not `comm`: that of a script with a #! line is its own name.
        first = (proc / "1" / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
    except (OSError, ValueError):
        return None
    name = PurePosixPath(first).name.lstrip("-")
    return name if name in _SHELLS else None


def _descends(pid: int, proc: Path) -> bool:
    """True if PID 1 is above it: who was put into the container later (`docker exec`) has another parent, or none."""
    above = _parent(pid, proc)
    while above > 1:
        above = _parent(above, proc)
    return above == 1


def _parent(pid: int, proc: Path) -> int:
    """Its parent; 0: that is not to be seen from here."""
    # After the name, in brackets, which may hold anything: state and parent.
    return int((proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
