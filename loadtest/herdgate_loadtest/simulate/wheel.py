"""Who comes when: a calendar queue (R. Brown, Communications of the ACM 31(10), 1988).

Moments are sorted into slots of `_SLOT_S`; only the slot that is being played is a heap. So it costs the same for a
thousand clients and for a million, for which one heap would be twice as slow as all the rest.

Rules: earliest first, by number at the same moment. A client is in it once at most.
"""

from heapq import heapify, heappop, heappush

__all__ = ["Wheel"]

_SLOTS_PER_S = 200.0

Entry = tuple[float, int]
"""A moment in seconds and a client's number."""


class Wheel:
    """Entries to come."""

    def __init__(self) -> None:
        self._slot = -1  # the one that is being played
        self._present: list[Entry] = []
        self._later: dict[int, list[Entry]] = {}
        self._slots: list[int] = []  # those of `_later`, a heap

    def put(self, at: float, client: int) -> None:
        """Client `client` comes at `at`, seconds; what is over by now comes next."""
        slot = int(at * _SLOTS_PER_S)
        if slot <= self._slot:
            heappush(self._present, (at, client))
        elif (entries := self._later.get(slot)) is not None:
            entries.append((at, client))
        else:
            self._later[slot] = [(at, client)]
            heappush(self._slots, slot)

    def pop(self, before: float) -> Entry | None:
        """The next entry; None: there is none before that moment."""
        present = self._present
        if not present:
            if not self._slots or self._slots[0] > before * _SLOTS_PER_S:
                return None
            self._slot = heappop(self._slots)
            self._present = present = self._later.pop(self._slot)
            heapify(present)
        return heappop(present) if present[0][0] < before else None

    def drop(self, clients: set[int]) -> None:
        """These do not come."""
        for entries in (self._present, *self._later.values()):
            entries[:] = [entry for entry in entries if entry[1] not in clients]
        heapify(self._present)
