"""The clock of leases: it runs while the machine sleeps, and no wall clock decides anything.

A hypervisor that freezes the whole machine stops this clock too; there only the epoch, checked where effects land,
protects.
"""

import asyncio
import time
from typing import Protocol

__all__ = ["BootClock", "Clock"]


class Clock(Protocol):
    """Seconds of one machine, from any moment on."""

    def now(self) -> float:
        """Seconds, never going back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for so long."""
        ...


class BootClock:
    """CLOCK_BOOTTIME where there is one (Linux: clock_gettime(2)), else the monotonic clock."""

    _id = getattr(time, "CLOCK_BOOTTIME", None)

    def now(self) -> float:
        """As `Clock.now`."""
        return time.monotonic() if self._id is None else time.clock_gettime(self._id)

    async def sleep(self, seconds: float) -> None:
        """As `Clock.sleep`."""
        await asyncio.sleep(seconds)
