"""Asynchronous work beside Playwright, whose own loop owns the thread of a test."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["run"]

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result(30)
