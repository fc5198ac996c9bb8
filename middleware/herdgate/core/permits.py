"""Permits: the right to hold one socket, and how many a client key holds.

A permit is *pending* from the decision until the app has accepted, then *open*; it is released exactly once, however
often `release` is called. A cap of N admits exactly N.
"""

from collections.abc import Iterator

from herdgate.core.clients import Client
from herdgate.core.limits import Limits

__all__ = ["OpenSockets", "Permit", "Permits"]


class OpenSockets:
    """Sockets held per client key, address and network. Keeps a key only while it holds one."""

    def __init__(self, limits: Limits) -> None:
        self._caps = (
            limits.client.open,
            (limits.anonymous or limits.client).open,
            limits.address.open,
            limits.network.open,
        )
        self._held: dict[tuple[str, str], int] = {}
        self._idle = self._caps == (None, None, None, None)

    def __len__(self) -> int:
        return len(self._held)

    def has_room(self, client: Client) -> bool:
        """True if one more socket of this client stays within every cap."""
        return self._idle or all(self._held.get(key, 0) < cap for key, cap in self._keys(client))

    def add(self, client: Client) -> None:
        """One more socket, cap or no cap."""
        for key, _ in self._keys(client):
            self._held[key] = self._held.get(key, 0) + 1

    def remove(self, client: Client) -> None:
        """One socket less."""
        for key, _ in self._keys(client):
            if self._held[key] == 1:
                del self._held[key]
            else:
                self._held[key] -= 1

    def _keys(self, client: Client) -> Iterator[tuple[tuple[str, str], int]]:
        if self._idle:
            return
        identified, anonymous, address, network = self._caps
        cap = identified if client.identified else anonymous
        if cap is not None:
            yield ("client", client.key), cap
        if address is not None:
            yield ("address", client.address), address
        if network is not None and client.network is not None:
            yield ("network", client.network), network


class Permit:
    """One socket's right to be. Made by `Permits.take`."""

    __slots__ = ("_client", "_permits", "_state")

    def __init__(self, permits: "Permits", client: Client) -> None:
        self._permits = permits
        self._client = client
        self._state = "pending"

    def opened(self) -> None:
        """The app has accepted: the set-up is over. Without effect on a permit that is not pending."""
        if self._state == "pending":
            self._state = "open"
            self._permits.pending -= 1
            self._permits.open += 1

    def release(self) -> None:
        """The socket is gone. Without effect the second time."""
        if self._state == "released":
            return
        if self._state == "pending":
            self._permits.pending -= 1
        else:
            self._permits.open -= 1
        self._state = "released"
        self._permits.sockets.remove(self._client)


class Permits:
    """All permits of one gate.

    Attributes:
        pending: set-ups in progress.
        open: sockets accepted and not yet gone.
        memory_full: no memory for one more; whoever can measure it sets it.
    """

    def __init__(self, limits: Limits) -> None:
        self._max_pending, self._max_open = limits.max_pending, limits.max_open
        self.pending = 0
        self.open = 0
        self.memory_full = False
        self.sockets = OpenSockets(limits)

    def has_room(self) -> bool:
        """True if one more set-up and one more socket stay within their caps."""
        if self.memory_full:
            return False
        if self._max_pending is not None and self.pending >= self._max_pending:
            return False
        return self._max_open is None or self.pending + self.open < self._max_open

    def take(self, client: Client) -> Permit:
        """A permit for `client`, cap or no cap: ask `has_room` and `sockets.has_room` first."""
        self.pending += 1
        self.sockets.add(client)
        return Permit(self, client)
