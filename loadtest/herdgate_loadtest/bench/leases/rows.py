"""The connections that the workers act on, put into the table beforehand."""

from herdgate_loadtest.servers.lease_table import FLEET, Place, shard_of

__all__ = ["CONNECTIONS", "create_connections"]

CONNECTIONS = tuple(f"bench-{number}" for number in range(12))


def create_connections(place: Place) -> None:
    """Put them there.

    Raises:
        CrowdError: the table does not take them.
    """
    for name in CONNECTIONS:
        place.put(pk=f"{FLEET}#S#{shard_of(name):04d}", sk=f"C#{name}", want="STARTED")
