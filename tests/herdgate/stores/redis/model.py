"""The same calls to `decide.lua` on a real Redis, to a parent's calendar and to that of the core.

Time and the seed of the random numbers are arguments of a call, so that both sides see the same ones.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from redis import Redis

import herdgate
from herdgate.core.calendar import Calendar
from herdgate.core.grant import Grant
from herdgate.core.limits import Limits
from herdgate.core.tickets import Ticket
from herdgate.stores.parent.decide import ParentCalendar
from herdgate.stores.redis.scripts import Script
from herdgate.stores.redis.store import DECIDE
from herdgate.stores.redis.wire import Ask, Reply, head_of_settings, named, pack_batch, pack_head, read_reply

__all__ = ["FULL_RETRY_S", "Calls", "Fleet", "Model", "Parent", "ParkMiller"]

FULL_RETRY_S = (1.0, 2.0)
PREFIX = "{herdgate:model}"
ISSUER = 77


class ParkMiller:
    """The random numbers of `state.lua`."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def __call__(self) -> float:
        self._state = self._state * 16807 % 2147483647
        return self._state / 2147483647


class Calls(ABC):
    """Calls of any of several gateways, as they go over the wire."""

    def __init__(self, limits: Limits, **head: Any) -> None:
        self.limits = limits
        self._sequence = 0
        self._head = {
            "seen_v": 0,
            "seen_firm": 0,
            "seen_issuer": 0,
            "issuer": ISSUER,
            "rate": limits.rate,
            "fraction": limits.admit_fraction,
            "given_back": 0,
            "counts": {},
            "workers": [],
            **head,
        }

    def call(
        self, asks: Sequence[Ask] = (), *, gateway: str = "one", workers: Sequence[str] = (), **head: Any
    ) -> Reply:
        """One call; grants come in the order of the asks."""
        self._sequence += 1
        workers = named(asks, workers)
        told = self._head | {"gateway": gateway, "sequence": self._sequence, "seed": 1, "workers": workers}
        data, order = pack_batch(asks, workers)
        told |= head
        settings = json.loads(head_of_settings(self.limits, herdgate.Fleet("redis://a")))
        text = pack_head(told, json.dumps({name: value for name, value in settings.items() if name not in told}))
        reply = read_reply(self.answer(text, data), asks, order, workers)
        grants: list[Grant] = [Grant(False)] * len(asks)
        for position, grant in zip(order, reply.grants, strict=True):
            grants[position] = grant
        return reply._replace(grants=grants)

    @abstractmethod
    def answer(self, text: str, data: bytes) -> Sequence[bytes]:
        """The reply to a head and a batch."""


class Fleet(Calls):
    """The script on a server."""

    def __init__(self, client: Redis, limits: Limits, **head: Any) -> None:
        client.flushall()
        super().__init__(limits, **head)
        self._client = client
        self._script: Script = DECIDE

    def answer(self, text: str, data: bytes) -> Sequence[bytes]:
        answer: Any = self._client.eval(self._script.text, 1, f"{PREFIX}:calendar", text, data)
        told: Sequence[bytes] = answer
        return told

    def scalar(self, name: str) -> float:
        """One field of the calendar's state."""
        return float(self._client.hget(f"{PREFIX}:calendar", name) or 0)


class Parent(Calls):
    """The calendar of a parent process."""

    def __init__(self, limits: Limits, **head: Any) -> None:
        super().__init__(limits, **head)
        self.state = ParentCalendar(limits, 1, 0.0)
        self.state.calendar.issuer = ISSUER

    def answer(self, text: str, data: bytes) -> Sequence[bytes]:
        head = json.loads(text)
        return self.state.decide(head, data, head["now"])


class Model:
    """The calendar of the core, for the same calls."""

    def __init__(self, limits: Limits) -> None:
        self.calendar = Calendar(limits, lambda: 0.0, 0.0)
        self.calendar.issuer = ISSUER

    def call(
        self,
        asks: Sequence[Ask],
        now: float,
        seed: int,
        given_back: int = 0,
        set_rate: float | None = None,
        *,
        seen_v: float = 0.0,
        paid_v: float = 0.0,
        used: Sequence[tuple[Ticket, int]] = (),
    ) -> list[Grant]:
        """What the script should answer, in the order of the asks."""
        calendar = self.calendar
        calendar._random = ParkMiller(seed)
        for ticket, klass in used:
            calendar.count_used(ticket, klass)
        calendar.catch_up(now, seen_v, paid_v)
        if set_rate is not None:
            calendar.set_rate(set_rate, now)
        for _ in range(given_back):
            calendar.give_back()
        grants: list[Grant] = [Grant(False)] * len(asks)
        for position in pack_batch(asks, ())[1]:
            grants[position] = self._answer(asks[position], now)
        return grants

    def _answer(self, ask: Ask, now: float) -> Grant:
        calendar = self.calendar
        if ask.mode == "defer":
            return calendar.defer(now, ask.klass)
        if ask.mode == "hint":
            low, high = FULL_RETRY_S
            return calendar.hint(now, ask.shown, low + (high - low) * calendar._random(), ask.klass)
        arrive = calendar.arrive if ask.mode == "arrive" else calendar.reserve
        return arrive(now, ask.shown, ask.klass)
