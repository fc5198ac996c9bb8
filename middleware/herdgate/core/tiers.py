"""Which limits hold for one client over a whole fleet.

A client has up to three tiers: its own, its address's and its wider network's; for whoever has no identity the first
one may have limits of its own.
"""

from collections.abc import Iterator
from typing import NamedTuple

from herdgate.core.clients import Client
from herdgate.core.limits import ClientLimits, Limits

__all__ = ["Tier", "fleet_scopes", "fleet_tiers"]


class Tier(NamedTuple):
    """One limit of one client.

    Attributes:
        name: `client`, `address` or `network`.
        key: whom it counts.
    """

    name: str
    key: str
    limits: ClientLimits


def fleet_scopes(limits: Limits) -> list[str]:
    """The names of those limits per client that have the scope `fleet`."""
    names = ("client", "anonymous", "address", "network")
    return [name for name in names if (tier := getattr(limits, name)) is not None and tier.scope == "fleet"]


def fleet_tiers(limits: Limits, client: Client) -> list[Tier]:
    """Those of this client that have the scope `fleet`."""
    return [tier for tier in _tiers(limits, client) if tier.limits.scope == "fleet"]


def _tiers(limits: Limits, client: Client) -> Iterator[Tier]:
    own = limits.client if client.identified or limits.anonymous is None else limits.anonymous
    yield Tier("client", client.key, own)
    yield Tier("address", client.address, limits.address)
    if client.network is not None:
        yield Tier("network", client.network, limits.network)
