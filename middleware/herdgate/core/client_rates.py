"""The rates that hold for one client in this process: its own, its address's, and its wider network's.

Those of scope `fleet` are none of them.
"""

from herdgate.core.clients import Client
from herdgate.core.errors import ConfigurationError
from herdgate.core.gcra import KeyedGcra
from herdgate.core.limits import ClientLimits, Limits

__all__ = ["ClientRates"]


class ClientRates:
    """One keyed GCRA per tier that has a rate; an arrival is counted in all that hold for it, or in none."""

    def __init__(self, limits: Limits) -> None:
        self._most_keys = limits.max_clients
        self._identified: KeyedGcra | None = None
        self._anonymous: KeyedGcra | None = None
        self._address: KeyedGcra | None = None
        self._network: KeyedGcra | None = None
        self.set_limits(limits)

    def __len__(self) -> int:
        """Client keys remembered."""
        return sum(len(tier) for tier in self._tiers)

    def set_limits(self, limits: Limits) -> None:
        """Other rates from now on; who is over the old one serves its penalty first.

        Raises:
            ConfigurationError: `max_clients` is another one: the tables have their size.
        """
        if limits.max_clients != self._most_keys:
            way_out = f"keep it at {self._most_keys:_} while the gate lives, or make a new one"
            raise ConfigurationError("max_clients", limits.max_clients, way_out)
        apart = None if self._anonymous is self._identified else self._anonymous
        self._identified = self._adjusted(self._identified, limits.client)
        self._anonymous = self._adjusted(apart, limits.anonymous) if limits.anonymous else self._identified
        self._address = self._adjusted(self._address, limits.address)
        self._network = self._adjusted(self._network, limits.network)
        tiers = (self._identified, self._anonymous, self._address, self._network)
        self._tiers = {id(tier): tier for tier in tiers if tier is not None}.values()

    def wait(self, client: Client, now: float) -> tuple[float, KeyedGcra] | None:
        """How many seconds this client has to wait, and for which of its rates; None: it need not."""
        for rate, key in self._of(client) if self._tiers else ():
            if wait_s := rate.wait(key, now):
                return wait_s, rate
        return None

    def charge(self, client: Client, now: float) -> tuple[float, KeyedGcra] | None:
        """Count one arrival against all of them; where one says to wait, as `wait`, and nothing is counted."""
        if not self._tiers:
            return None
        cells = self._of(client)
        for rate, key in cells:
            if wait_s := rate.wait(key, now):
                return wait_s, rate
        for rate, key in cells:
            rate.charge(key, now)
        return None

    def give_back(self, client: Client, charged_at: float, now: float) -> None:
        """Undo one `charge`."""
        if self._tiers:
            for rate, key in self._of(client):
                rate.give_back(key, charged_at, now)

    def _adjusted(self, rate: KeyedGcra | None, tier: ClientLimits) -> KeyedGcra | None:
        if tier.rate is None or tier.scope == "fleet":
            return None
        if rate is None:
            return KeyedGcra(tier.rate, tier.burst, self._most_keys)
        rate.set_limit(tier.rate, tier.burst)
        return rate

    def _of(self, client: Client) -> list[tuple[KeyedGcra, str]]:
        own = self._identified if client.identified else self._anonymous
        cells = [] if own is None else [(own, client.key)]
        if self._address is not None:
            cells.append((self._address, client.address))
        if self._network is not None and client.network is not None:
            cells.append((self._network, client.network))
        return cells
