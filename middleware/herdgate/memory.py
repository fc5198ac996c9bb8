"""How much memory this process holds, for the limit that refuses before the system does."""

import os
from collections.abc import Callable
from pathlib import Path

from herdgate.core.errors import ConfigurationError

__all__ = ["MemoryWatch", "resident_bytes"]

_STATM = Path("/proc/self/statm")
_LOOK_S = 0.1


def resident_bytes() -> int:
    """Resident memory of this process, bytes (Linux: proc(5), statm)."""
    return int(_STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class MemoryWatch:
    """Says whether a process is over its memory limit; looks at most ten times a second.

    Args:
        max_bytes: the limit; None: never over.
        read: resident bytes.

    Raises:
        ConfigurationError: there is a limit, and this system does not say what a process holds.
    """

    def __init__(self, max_bytes: int | None, read: Callable[[], int] = resident_bytes) -> None:
        if max_bytes is not None and read is resident_bytes and not _STATM.exists():
            raise ConfigurationError("max_memory_bytes", max_bytes, "write None: this system has no /proc/self/statm")
        self._max_bytes = max_bytes
        self._read = read
        self._next_look: float | None = None
        self._is_over = False

    def is_over(self, now: float) -> bool:
        """True if the process held more than the limit when last looked at; `now` is monotonic seconds."""
        if self._max_bytes is not None and (self._next_look is None or now >= self._next_look):
            self._is_over = self._read() > self._max_bytes
            self._next_look = now + _LOOK_S
        return self._is_over
