"""A crowd that is cut off in one instant, and a server that admits R a second: how it comes back.

The server is a token bucket that holds one second of R. With `hints` it tells whom it refuses when there is room,
each the next place in its order, and keeps that promise. A refusal takes 50 ms. Triggers that do not share the
backoff dial each for itself, until each of them has a socket.
"""

import heapq
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from herdgate_loadtest.vet.delays import Delays

if TYPE_CHECKING:
    import random

    from herdgate_loadtest.vet.model import Client, Trigger

__all__ = ["CLIENTS", "IDEAL_S", "RATE", "Crowd", "come_back"]

CLIENTS = 2000
RATE = 100.0
IDEAL_S = (CLIENTS - RATE) / RATE
"""When the last one could be back, in seconds: the bucket is full at the cut."""

_REFUSAL_S = 0.05
_AT_ONCE_S = 0.1
_LATENESS_S = (0.01, 0.3)
_MOST_TRIES_PER_CLIENT = 30
"""Enough to know; the play is over."""


@dataclass(slots=True)
class Crowd:
    """What the crowd did. Seconds; counts over all clients."""

    tries: int = 0
    waits: int = 0
    at_once: int = 0
    told: int = 0
    early: int = 0
    sockets: int = 0
    last_back_s: float = 0.0
    longest_wait_s: float = 0.0
    back: set[int] = field(default_factory=set)


class _Bucket:
    def __init__(self) -> None:
        self.tokens = RATE
        self.at_s = 0.0

    def admits(self, now_s: float) -> bool:
        self.tokens = min(RATE, self.tokens + (now_s - self.at_s) * RATE)
        self.at_s = now_s
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


@dataclass(slots=True)
class _Dialler:
    """One client's trigger on its way to its next try."""

    number: int
    trigger: "Trigger"
    at_s: float = 0.0
    attempt: int = 1
    wait_s: float = 0.0
    slot_s: float | None = None


def come_back(client: "Client", rng: "random.Random", *, hints: bool) -> Crowd:
    """Play it to the end: everybody is back or has given up, or has tried far too often."""
    return _Scene(client, rng, hints=hints).play()


class _Scene:
    def __init__(self, client: "Client", rng: "random.Random", *, hints: bool) -> None:
        self.client = client
        self.rng = rng
        self.hints = hints
        self.delays = Delays(client)
        self.bucket = _Bucket()
        self.crowd = Crowd()
        self.last_slot_s = 0.0

    def play(self) -> Crowd:
        diallers = [dialler for number in range(CLIENTS) for dialler in self._diallers(number)]
        agenda = [(each.at_s, place, each) for place, each in enumerate(diallers) if self._waits(each, 0.0)]
        heapq.heapify(agenda)
        while agenda and self.crowd.tries < _MOST_TRIES_PER_CLIENT * CLIENTS:
            now_s, place, dialler = agenda[0]
            if self._goes_on(dialler, now_s):
                heapq.heapreplace(agenda, (dialler.at_s, place, dialler))
            else:
                heapq.heappop(agenda)
        if agenda:
            self.crowd.last_back_s = math.inf
        return self.crowd

    def _diallers(self, number: int) -> list[_Dialler]:
        triggers = self.client.triggers[:1] if self.client.shared_backoff else self.client.triggers
        return [_Dialler(number, trigger) for trigger in triggers]

    def _goes_on(self, dialler: _Dialler, now_s: float) -> bool:
        """One try; whether another one follows."""
        if self._is_admitted(dialler, now_s):
            self._count_in(dialler, now_s)
            return False
        self.crowd.tries += self.client.tries_per_attempt
        if self.hints and dialler.slot_s is None:
            dialler.slot_s = self.last_slot_s = max(self.last_slot_s, now_s) + 1 / RATE
        dialler.attempt += 1
        return self._waits(dialler, now_s + _REFUSAL_S)

    def _is_admitted(self, dialler: _Dialler, now_s: float) -> bool:
        if dialler.slot_s is None:
            return self.bucket.admits(now_s)
        self.crowd.told += 1
        self.crowd.early += now_s < dialler.slot_s
        return now_s >= dialler.slot_s

    def _count_in(self, dialler: _Dialler, now_s: float) -> None:
        self.crowd.tries += 1
        self.crowd.sockets += 1
        self.crowd.back.add(dialler.number)
        self.crowd.last_back_s = now_s

    def _waits(self, dialler: _Dialler, now_s: float) -> bool:
        """Set the time of the next try; False: there is none."""
        if self.client.max_retries is not None and dialler.attempt > self.client.max_retries:
            return False
        wait_s = self._wait_s(dialler, now_s)
        if math.isinf(wait_s):
            return False
        crowd = self.crowd
        crowd.waits += 1
        crowd.at_once += wait_s < _AT_ONCE_S
        crowd.longest_wait_s = max(crowd.longest_wait_s, wait_s)
        dialler.at_s, dialler.wait_s = now_s + wait_s, wait_s
        return True

    def _wait_s(self, dialler: _Dialler, now_s: float) -> float:
        every_s = dialler.trigger.every_s
        if every_s is not None and not self.client.shared_backoff:
            return every_s if dialler.attempt > 1 else self.rng.uniform(0, every_s)  # it ticks whatever happens
        if dialler.slot_s is not None and self.client.honours_hints:
            told_s = min(max(dialler.slot_s - now_s, 0), self.client.hint_cap_s)
            return told_s + self.rng.uniform(*_LATENESS_S) + self.rng.uniform(0, self.client.hint_jitter_s)
        return self.delays.delay_s(dialler.attempt, dialler.wait_s, self.rng)
