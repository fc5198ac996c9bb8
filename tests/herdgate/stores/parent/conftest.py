"""What the tests of the parent's calendar share."""

from collections.abc import AsyncIterator

import pytest

from tests.herdgate.stores.redis.links import without_loose_ends

__all__ = ["loose_ends"]


@pytest.fixture(autouse=True)
async def loose_ends() -> AsyncIterator[None]:
    """No test leaves an exception that nobody saw, or a task."""
    async with without_loose_ends():
        yield
