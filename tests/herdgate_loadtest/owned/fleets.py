"""A small fleet with leases for tests, where this machine has what it needs."""

from collections.abc import Iterator
from contextlib import contextmanager

from herdgate_loadtest.owned.fleet import OwnedFleet, owned_fleet
from tests.ministack import PROGRAM
from tests.needs import unmet
from tests.redis_servers import redis_server

__all__ = ["check_needs", "small_fleet"]


def check_needs() -> None:
    """Skip where there is no redis-server or no ministack."""
    with redis_server():
        pass
    if not PROGRAM.exists():
        unmet("ministack")


@contextmanager
def small_fleet(gateways: int = 1) -> Iterator[OwnedFleet]:
    """Two workers."""
    check_needs()
    with owned_fleet(rate=1_000.0, workers=2, gateways=gateways) as fleet:
        yield fleet
