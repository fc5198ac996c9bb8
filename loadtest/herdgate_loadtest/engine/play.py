"""Single clients of a crowd come, are cut off and leave, each at a moment of its own: what a trace says.

Rules: a step is taken at its moment or later, never earlier, in order. A step that has nothing to do (a cut of a client
that still waits outside) is counted as missed: it can have no effect.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from herdgate_loadtest.engine.client import Client
from herdgate_loadtest.engine.scheduler import Scheduler

__all__ = ["Act", "Play", "Played", "Step"]

Act = Literal["come", "close", "reset", "leave"]
"""Come for the first time, be cut off (1001, or as if the network had gone) and come back, or leave for good."""

_LOOK_S = 0.02
_SLICE = 256  # about 10 ms of cutting


class Step(NamedTuple):
    """What client number `client` of a crowd does, and when, seconds."""

    at_s: float
    client: int
    act: Act


class Played(NamedTuple):
    """What came of steps.

    Attributes:
        are_in: everybody who should be in was, within the deadline.
        missed: steps that had nothing to do, by act.
    """

    are_in: bool
    missed: Counter[str]


class Play:
    """Plays steps on the clients of a crowd."""

    def __init__(self, clients: Sequence[Client], scheduler: Scheduler) -> None:
        self._missed: Counter[str] = Counter()
        self._clients, self._scheduler = clients, scheduler
        self._leaving: set[Client] = set()
        self._present = {client for client in clients if client.admitted_at is not None or client.start is not None}

    async def play(self, steps: Sequence[Step], *, began: float, deadline_s: float) -> Played:
        """Play them all, counted from `began` (monotonic seconds), and wait up to `deadline_s` for all who stay."""
        for number, step in enumerate(steps):
            if (wait_s := began + step.at_s - time.monotonic()) > 0 or number % _SLICE == _SLICE - 1:
                await asyncio.sleep(max(0.0, wait_s))
            self._take(self._clients[step.client], step.act)
        end = time.monotonic() + deadline_s
        while not self._all_are_in():
            if time.monotonic() >= end:
                return Played(False, self._missed)
            await asyncio.sleep(_LOOK_S)
        return Played(True, self._missed)

    def _take(self, client: Client, act: Act) -> None:
        now = time.monotonic()
        if act == "come":
            self._present.add(client)
            self._scheduler.join_later(client, now)
        elif client.admitted_at is None:
            self._miss(client, act)
        elif act == "leave":
            client.leave()
            self._scheduler.leave(client)
            self._present.discard(client)
        else:
            client.reset() if act == "reset" else client.leave()
            self._scheduler.cut_off_one(client, now)

    def _miss(self, client: Client, act: Act) -> None:
        """Who should leave but is outside still leaves once it is in."""
        self._missed[act] += 1
        if act == "leave":
            self._leaving.add(client)

    def _all_are_in(self) -> bool:
        for client in [client for client in self._leaving if client.admitted_at is not None]:
            self._leaving.discard(client)
            self._take(client, "leave")
        return self._scheduler.settled and all(client.admitted_at is not None for client in self._present)
