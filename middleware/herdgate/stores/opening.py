"""The parts of a gate that take a Redis: what they need is imported only where there is one."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from herdgate.core.limits import Limits
from herdgate.fleet import Fleet

if TYPE_CHECKING:
    from herdgate.stores.redis.fleet_clients import FleetClients
    from herdgate.stores.redis.store import RedisStore

__all__ = ["open_clients", "open_store"]


def open_store(fleet: Fleet, limits: Limits, **settings: Any) -> "RedisStore":
    """The calendar of a fleet; see `RedisStore`."""
    from herdgate.stores.redis.store import RedisStore

    return RedisStore(fleet, limits, **settings)


def open_clients(
    fleet: Fleet, limits: Limits, route: str, gateways: Callable[[], int], clock: Callable[[], float]
) -> "FleetClients | None":
    """What asks a fleet about clients, where limits per client hold over all of it; see `fleet_clients`."""
    from herdgate.stores.redis.fleet_clients import open_clients

    return open_clients(fleet, limits, route, gateways, clock)
