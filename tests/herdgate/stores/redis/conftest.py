"""What the tests of the link share."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.herdgate.stores.redis.links import without_loose_ends
from tests.redis_servers import RedisServer, redis_server

__all__ = ["loose_ends", "redis"]


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    """A server of the test's own."""
    with redis_server() as server:
        yield server


@pytest.fixture(autouse=True)
async def loose_ends() -> AsyncIterator[None]:
    """No test leaves an exception that nobody saw, or a task."""
    async with without_loose_ends():
        yield
