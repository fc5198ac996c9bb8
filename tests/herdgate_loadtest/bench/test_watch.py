"""A reason where gateways decided without Redis too often."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

import pytest

from herdgate_loadtest.bench.watch import watched
from herdgate_loadtest.errors import CrowdError


def alone_each(number: int) -> Callable[[], Awaitable[bool]]:
    """Alone at every so many looks."""
    looks = count(1)

    async def is_alone() -> bool:
        return next(looks) % number == 0

    return is_alone


async def test_gateways_that_were_alone_too_often_are_a_reason() -> None:
    async with watched(alone_each(2), 0.001) as reasons:
        await asyncio.sleep(0.1)
        assert reasons == []
    (reason,) = reasons
    assert "no answer from Redis in time in" in reason


@pytest.mark.parametrize("seconds", [0.0, 0.05])
async def test_gateways_that_were_in_the_fleet_are_none(seconds: float) -> None:
    async with watched(alone_each(1_000), 0.001) as reasons:
        await asyncio.sleep(seconds)
    assert reasons == []


async def test_gateway_that_answers_no_more_is_an_error() -> None:
    async def is_alone() -> bool:
        raise CrowdError("gateway 2 does not answer")

    with pytest.raises(CrowdError, match="gateway 2"):
        async with watched(is_alone, 0.001):
            await asyncio.sleep(0.05)
