"""Crowds at several gateways, behind a balancer that picks one at random for each try."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from herdgate_loadtest.bench.gateways import Front
from herdgate_loadtest.engine import Attempt, Crowd, CrowdConfig, loopback_sources
from herdgate_loadtest.errors import CrowdError

__all__ = ["Door", "crowd_at", "fleet_is_up", "keep_asking", "until"]

_PICKS = 1_009  # prime, and above the number of tries of any client, so that no two clients follow each other for long
_SOURCES = 4
_LOOK_S = 0.02
_READY_S = 30.0
_FOR_EVER_S = 1e6


class Door(Protocol):
    """Where crowds go."""

    @property
    def url(self) -> str:
        """As `CrowdConfig.urls`."""
        ...


def crowd_at(
    gateways: Sequence[Door],
    clients: Mapping[str, int],
    seed: int = 1,
    observe: Callable[[Attempt], None] | None = None,
) -> Crowd:
    """A crowd whose tries each go to a gateway picked at random.

    The engine goes round its URLs, client n's try t to number n + t; so it is given a long list of random picks.
    """
    pick = random.Random(seed)
    urls = tuple(pick.choice(gateways).url for _ in range(_PICKS)) if len(gateways) > 1 else (gateways[0].url,)
    return Crowd(CrowdConfig(urls=urls, clients=clients, sources=loopback_sources(_SOURCES), seed=seed), observe)


@asynccontextmanager
async def keep_asking(crowd: Crowd, per_s: float) -> AsyncIterator[Crowd]:
    """A crowd that comes, so many new clients a second, and goes on asking while the block runs; then it leaves."""
    async with crowd:
        coming = asyncio.create_task(crowd.bring_up(rate=per_s, deadline_s=_FOR_EVER_S))
        await asyncio.sleep(0)  # it is up when this returns
        if coming.done():
            await coming
        try:
            yield crowd
        finally:
            coming.cancel()
            with suppress(asyncio.CancelledError):
                await coming


async def fleet_is_up(gateways: Sequence[Front]) -> None:
    """Wait until every gateway decides with Redis, and knows of all the others.

    Raises:
        CrowdError: one of them does not.
    """
    end = time.monotonic() + _READY_S
    while not all(await asyncio.gather(*(gateway.is_in(len(gateways)) for gateway in gateways))):
        if time.monotonic() > end:
            raise CrowdError(f"the gateways did not find each other through Redis in {_READY_S:g} s: run it again")
        await asyncio.sleep(_LOOK_S)


async def until(condition: Callable[[], bool], within_s: float) -> float | None:
    """Seconds until the condition held; None: it did not in time."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > within_s:
            return None
        await asyncio.sleep(_LOOK_S)
    return time.monotonic() - began
