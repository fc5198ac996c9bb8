"""A parent's calendar, and its socket as its children see it, in the loop of the test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from herdgate import Limits
from herdgate.stores.parent.link import ParentLink
from herdgate.stores.parent.server import CalendarServer

__all__ = ["calendar_of", "link_to", "path_of"]


@asynccontextmanager
async def calendar_of(limits: Limits) -> AsyncIterator[CalendarServer]:
    """It takes calls while the block runs."""
    server = CalendarServer(limits)
    await server.start()
    try:
        yield server
    finally:
        await server.aclose()


def path_of(server: CalendarServer) -> str:
    """Its socket."""
    return server.url.removeprefix("herdgate+unix://")


@asynccontextmanager
async def link_to(path: str, **settings: float) -> AsyncIterator[ParentLink]:
    """A link, connected with its first call."""
    link = ParentLink(path, **settings)
    try:
        yield link
    finally:
        await link.aclose()
