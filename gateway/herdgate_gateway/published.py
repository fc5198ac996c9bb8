"""A gateway as its admin thread sees it: its counts are published by the main loop, four times a second."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from herdgate_gateway.admin import Status, hand_over

__all__ = ["PUBLISH_S", "Controlled", "PublishedView"]

PUBLISH_S = 0.25


class Controlled(Protocol):
    """What may be changed, in the main loop."""

    def set_rate(self, rate: float | None) -> None:
        """See `herdgate.Gate.set_rate`."""

    def set_fraction(self, fraction: float) -> None:
        """See `herdgate.Gate.set_admit_fraction`."""

    def drain(self, within_s: float | None) -> None:
        """Begin a drain by a call, within so many seconds; None: those of the settings."""


class PublishedView:
    """What `herdgate_gateway.admin.View` asks for. Made in the main loop.

    Args:
        controlled: takes the changes.
        take: counts as of now; called with the moment the gateway was started, Unix seconds.
        is_ready: whether new arrivals should be sent here, by the latest counts. Called in the admin thread.
    """

    def __init__(
        self, controlled: Controlled, take: Callable[[float], Status], is_ready: Callable[[Status], bool]
    ) -> None:
        self._controlled = controlled
        self._take = take
        self._is_ready = is_ready
        self._loop = asyncio.get_running_loop()
        self._started_at = time.time()
        self._publish()

    def status(self) -> Status:
        """The latest counts."""
        return self._status

    def is_ready(self) -> bool:
        """True while new arrivals should be sent here."""
        return self._is_ready(self._status)

    async def set_rate(self, rate: float | None) -> None:
        """Change the rate in the main loop."""
        await hand_over(self._loop, partial(self._controlled.set_rate, rate))

    async def drain(self, within_s: float | None) -> None:
        """Begin a drain in the main loop; what is told next knows of it."""

        def begin() -> None:
            self._controlled.drain(within_s)
            self._timer.cancel()
            self._publish()

        await hand_over(self._loop, begin)

    async def set_fraction(self, fraction: float) -> None:
        """Change the admitted share in the main loop."""
        await hand_over(self._loop, partial(self._controlled.set_fraction, fraction))

    def stop(self) -> None:
        """Publish no more."""
        self._timer.cancel()

    def _publish(self) -> None:
        self._status = self._take(self._started_at)
        self._timer = self._loop.call_later(PUBLISH_S, self._publish)
