"""A gate whose clock stands still until told otherwise."""

import random

from herdgate import Gate, Limits
from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.clients import LOCAL, Client
from tests.at_once import at_once

__all__ = ["Clock", "admit", "come", "gate_of", "refuse"]


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def gate_of(clock: Clock, limits: Limits, **settings: object) -> Gate:
    """One on this clock; its random numbers are the same each time."""
    return Gate(limits, clock=clock, rng=random.Random(1).random, **settings)  # type: ignore[arg-type]


def come(gate: Gate, ticket: str | None = None, client: Client = LOCAL, klass: str | None = None) -> Admitted | Denied:
    """One arrival."""
    return at_once(gate.decide(Arrival(client, ticket, klass=klass)))


def admit(gate: Gate, ticket: str | None = None, client: Client = LOCAL) -> Admitted:
    """One that comes in."""
    verdict = come(gate, ticket, client)
    assert isinstance(verdict, Admitted)
    return verdict


def refuse(gate: Gate, ticket: str | None = None, client: Client = LOCAL, klass: str | None = None) -> Denied:
    """One that does not."""
    verdict = come(gate, ticket, client, klass)
    assert isinstance(verdict, Denied)
    return verdict
