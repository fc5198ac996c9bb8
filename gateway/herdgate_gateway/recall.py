"""Calls clients back whose worker is lost, or has given them away: close 1012 with a time and a ticket.

    worker's leg ends without goodbye   a hint: somebody has to take its place first
    worker says 1012, shard moved       a firm slot: its successor is there already

A 1012 that tells a time by itself, or has words of its own, is the worker's business and passes.
"""

from collections.abc import Awaitable
from typing import Protocol

from herdgate.core.answers import Invitation
from herdgate.denial import close_reason
from herdgate_gateway.close_codes import SERVICE_RESTART
from herdgate_gateway.endings import Farewell, back_soon

__all__ = ["MOVED", "Inviting", "call_back", "has_moved"]

MOVED = "shard moved"
"""The reason that the worker kit gives with 1012."""


class Inviting(Protocol):
    """As `herdgate.Gate.invite`, for one client."""

    def __call__(self, *, firm: bool) -> Awaitable[Invitation]:
        """When it may come back."""
        ...


def has_moved(code: int | None, reason: str) -> bool:
    """True for the goodbye of a worker whose client is served elsewhere from now on."""
    return code == SERVICE_RESTART and reason in ("", MOVED)


async def call_back(invite: Inviting | None, *, firm: bool) -> Farewell:
    """What the client is told.

    Args:
        invite: of the client's gate. None: it is told to come within 100 to 1000 ms.
    """
    if invite is None:
        return back_soon()
    return Farewell(SERVICE_RESTART, close_reason(await invite(firm=firm)))
