"""Permits: the right to hold one socket, and how many a client key holds.

A permit is *pending* from the decision until the app has accepted, then *open*; it is released exactly once, however
often `release` is called. A cap of N admits exactly N.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Protocol

from herdgate.core.clients import Client
from herdgate.core.limits import ClientLimits, Limits

__all__ = ["OpenSockets", "Permit", "Permits", "Place"]


class Place(Protocol):
    """What a permit holds elsewhere: one of the sockets that a fleet allows its client."""

    def release(self) -> None:
        """Give it back. Without effect the second time."""
        ...


class OpenSockets:
    """Sockets held per client key, address and network. Keeps a key only while it holds one.

    All of them are counted, capped or not, so that a cap set while sockets are open knows of them. Caps of scope
    `fleet` are not kept here.
    """

    def __init__(self, limits: Limits) -> None:
        self._held: dict[tuple[str, str], int] = {}
        self.set_limits(limits)

    def __len__(self) -> int:
        return len(self._held)

    def set_limits(self, limits: Limits) -> None:
        """Other caps from now on; sockets above them stay."""
        tiers = (limits.client, limits.anonymous or limits.client, limits.address, limits.network)
        self._caps = tuple(map(_cap_here, tiers))
        self._idle = self._caps == (None, None, None, None)

    def has_room(self, client: Client) -> bool:
        """True if one more socket of this client stays within every cap."""
        if self._idle:
            return True
        identified, anonymous, *wider = self._caps
        caps = (identified if client.identified else anonymous, *wider)
        return all(cap is None or self._held.get(key, 0) < cap for key, cap in zip(_keys(client), caps, strict=False))

    def add(self, client: Client) -> None:
        """One more socket, cap or no cap."""
        for key in _keys(client):
            self._held[key] = self._held.get(key, 0) + 1

    def remove(self, client: Client) -> None:
        """One socket less."""
        for key in _keys(client):
            if self._held[key] == 1:
                del self._held[key]
            else:
                self._held[key] -= 1


def _cap_here(tier: ClientLimits) -> int | None:
    return tier.open if tier.scope == "process" else None


def _keys(client: Client) -> Iterator[tuple[str, str]]:
    yield "client", client.key
    yield "address", client.address
    if client.network is not None:
        yield "network", client.network


class Permit:
    """One socket's right to be. Made by `Permits.take`.

    Attributes:
        worker: the worker that it is for; None: none in particular.
    """

    __slots__ = ("_client", "_permits", "_place", "_state", "worker")

    def __init__(self, permits: "Permits", client: Client, worker: str | None, place: Place | None) -> None:
        self.worker = worker
        self._place = place
        self._permits = permits
        self._client = client
        self._state = "pending"

    def opened(self) -> None:
        """The app has accepted: the set-up is over. Without effect on a permit that is not pending."""
        if self._state == "pending":
            self._state = "open"
            self._permits.pending -= 1
            self._permits.open += 1

    def move(self, worker: str) -> None:
        """It is for this worker after all. Without effect on one that is released, or for none in particular."""
        if self._state != "released" and self.worker is not None:
            self._permits.workers[self.worker] -= 1
            self._permits.workers[worker] += 1
            self.worker = worker

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
        if self.worker is not None:
            self._permits.workers[self.worker] -= 1
        if self._place is not None:
            self._place.release()


class Permits:
    """All permits of one gate.

    Attributes:
        pending: set-ups in progress.
        open: sockets accepted and not yet gone.
        workers: both together, by the worker they are for.
        memory_full: no memory for one more; whoever can measure it sets it.
    """

    def __init__(self, limits: Limits) -> None:
        self.pending = 0
        self.open = 0
        self.workers: Counter[str] = Counter()
        self.memory_full = False
        self.sockets = OpenSockets(limits)
        self.set_limits(limits)

    def set_limits(self, limits: Limits) -> None:
        """Other caps from now on; permits above them stay."""
        self._max_pending, self._max_open = limits.max_pending, limits.max_open
        self.sockets.set_limits(limits)

    def has_room(self) -> bool:
        """True if one more set-up and one more socket stay within their caps."""
        if self.memory_full:
            return False
        if self._max_pending is not None and self.pending >= self._max_pending:
            return False
        return self._max_open is None or self.pending + self.open < self._max_open

    def take(self, client: Client, worker: str | None = None, place: Place | None = None) -> Permit:
        """A permit for `client`, cap or no cap: ask `has_room` and `sockets.has_room` first.

        Args:
            worker: the worker it is for.
            place: released with it.
        """
        self.pending += 1
        self.sockets.add(client)
        if worker is not None:
            self.workers[worker] += 1
        return Permit(self, client, worker, place)
