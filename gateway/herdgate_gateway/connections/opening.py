"""Makes the store of connections that the settings of a gateway ask for."""

from herdgate_gateway.connections.store import Connections
from herdgate_gateway.leases.dynamo import DynamoLeases
from herdgate_gateway.routing.opening import fleet_channel
from herdgate_gateway.settings import Settings

__all__ = ["open_connections"]


def open_connections(settings: Settings) -> Connections | None:
    """For the admin listener of a gateway; None: it knows no lease table.

    Raises:
        ConfigurationError: redis-py is missing.
    """
    place = settings.leases.place()
    if place is None:
        return None
    return Connections(DynamoLeases(place), settings.fleet.name, fleet_channel(settings))
