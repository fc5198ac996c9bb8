"""Every test here that needs a loop runs on uvloop, which the gateway uses, and on asyncio's own."""

import asyncio
from collections.abc import Callable

import uvloop

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "uvloop": uvloop.new_event_loop,
    "asyncio": asyncio.new_event_loop,
}


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """What pytest-asyncio makes loops with."""
    return LOOPS
