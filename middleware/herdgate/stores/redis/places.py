"""The places that this process holds in its fleet: one for each socket of a client with a limit of scope `fleet`.

A place is a member of one sorted set for each cap that holds for its client. It is told to Redis again every third of
the time it lasts; what was not told yet, or may have been lost, is told with the next call.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain, islice

from herdgate.core.clients import Client

__all__ = ["PLACE_S", "HeldPlace", "Places"]

PLACE_S = 10.0
"""Seconds after which a place that is not renewed is free again; as in `clients.lua`."""

RENEW_S = PLACE_S / 3
MOST_TOLD = 500  # of a kind in a call, so that none keeps Redis for more than some milliseconds


class HeldPlace:
    """One socket of one client. Made by `Places.make`.

    Attributes:
        id: no other place of the fleet has it.
        route: whose limits hold for it.
        names: of the sets it is in.
        is_sent: Redis may have heard of it.
        due: when to renew it, monotonic seconds.
    """

    __slots__ = ("_places", "client", "due", "id", "is_sent", "names", "route")

    def __init__(self, places: "Places", name: str, route: str, client: Client, names: Sequence[str]) -> None:
        self._places = places
        self.id, self.route, self.client, self.names = name, route, client, names
        self.is_sent = False
        self.due = 0.0

    def release(self) -> None:
        """Give it back. Without effect the second time."""
        self._places.release(self)


class Places:
    """Those of one process.

    Args:
        owner: a name that no other process has.
        clock: monotonic seconds.
        wake: called when there is something new to tell.
    """

    def __init__(self, owner: str, clock: Callable[[], float], wake: Callable[[], None]) -> None:
        self._owner, self._clock, self._wake = owner, clock, wake
        self._made = 0
        self._uncapped: dict[str, HeldPlace] = {}  # in no set, as long as the limits stay
        self._fresh: dict[str, HeldPlace] = {}  # to be told now
        self._known: dict[str, HeldPlace] = {}  # to be renewed, the next one first
        self._dropped: dict[str, tuple[HeldPlace, float]] = {}
        self._counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._uncapped) + len(self._fresh) + len(self._known)

    def make(self, route: str, client: Client, names: Sequence[str]) -> HeldPlace:
        """A place that nobody holds yet."""
        self._made += 1
        return HeldPlace(self, f"{self._owner}:{self._made}", route, client, names)

    def hold(self, place: HeldPlace, *, is_known: bool) -> None:
        """It is taken; `is_known`: Redis has it already."""
        self._counts.update(place.names)
        if is_known and place.names:
            self._renewed(place)
        else:
            self._shelf(place)[place.id] = place
        self._wake()

    def release(self, place: HeldPlace) -> None:
        """It is free again; Redis is told, if it may have heard of it."""
        if self._take_off(place):
            self._uncount(place.names)
        if place.is_sent:
            place.is_sent = False
            self._dropped[place.id] = (place, self._clock())
            self._wake()

    def count(self, name: str) -> int:
        """Places of this process in one set."""
        return self._counts[name]

    def rename(self, route: str, names_of: Callable[[Client], Sequence[str]]) -> None:
        """Other sets from now on; in the old ones they are over by themselves."""
        held = chain(self._uncapped.values(), self._fresh.values(), self._known.values())
        for place in [place for place in held if place.route == route]:
            self._take_off(place)
            self._uncount(place.names)
            place.names = names_of(place.client)
            self.hold(place, is_known=False)

    def doubt(self) -> None:
        """Redis may not know any of them."""
        self._fresh.update(self._known)
        self._known.clear()

    def fresh(self) -> list[HeldPlace]:
        """Those to be told now, at most as many as go into a call."""
        places = list(islice(self._fresh.values(), MOST_TOLD))
        for place in places:
            place.is_sent = True
        return places

    def due(self) -> list[HeldPlace]:
        """Those to be renewed now, the same way."""
        now = self._clock()
        return [place for place in islice(self._known.values(), MOST_TOLD) if place.due <= now]

    def dropped(self) -> list[HeldPlace]:
        """Those to be taken out now, the same way. Whatever is over by itself is not among them."""
        since = self._clock() - PLACE_S
        self._dropped = {name: (place, at) for name, (place, at) in self._dropped.items() if at > since}
        return [place for place, _ in islice(self._dropped.values(), MOST_TOLD)]

    def told(self, places: Sequence[HeldPlace], dropped: Sequence[HeldPlace]) -> None:
        """Redis has heard of these."""
        for place in places:
            if self._take_off(place):
                self._renewed(place)
        for place in dropped:
            self._dropped.pop(place.id, None)

    def wait_s(self) -> float | None:
        """Seconds until there is something to tell; None: there is nothing."""
        if self._fresh or self._dropped:
            return 0.0
        first = next(iter(self._known.values()), None)
        return None if first is None else max(0.0, first.due - self._clock())

    def _shelf(self, place: HeldPlace) -> dict[str, HeldPlace]:
        return self._fresh if place.names else self._uncapped

    def _take_off(self, place: HeldPlace) -> bool:
        """False if it is not held."""
        return any(shelf.pop(place.id, None) for shelf in (self._known, self._fresh, self._uncapped))

    def _renewed(self, place: HeldPlace) -> None:
        place.due = self._clock() + RENEW_S
        self._known[place.id] = place

    def _uncount(self, names: Sequence[str]) -> None:
        for name in names:
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name]
