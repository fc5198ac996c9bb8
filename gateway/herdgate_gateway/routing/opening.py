"""Makes the router that settings ask for."""

from herdgate_gateway.leases.channel import Channel, open_channel
from herdgate_gateway.leases.dynamo import DynamoLeases
from herdgate_gateway.leases.table import LeaseTable
from herdgate_gateway.routing.router import Router
from herdgate_gateway.settings import Settings
from herdgate_gateway.workers import WorkerPool

__all__ = ["fleet_channel", "make_router"]


def make_router(settings: Settings, pool: WorkerPool, table: LeaseTable | None) -> Router | None:
    """For one gateway; None: its workers are those of the settings.

    Args:
        pool: gets the owners as its workers.
        table: in place of the one in the settings.

    Raises:
        ConfigurationError: redis-py is missing.
    """
    place = settings.leases.place()
    if table is None:
        if place is None:
            return None
        table = DynamoLeases(place)
    return Router(pool, table, settings.fleet.name, fleet_channel(settings))


def fleet_channel(settings: Settings) -> Channel | None:
    """Where news of the fleet is told; None: it has no Redis.

    Raises:
        ConfigurationError: redis-py is missing.
    """
    redis = settings.fleet.redis
    return None if redis is None else open_channel(redis.get_secret_value(), settings.fleet.name)
