"""One client's delays, attempt by attempt, as a seed has them."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from herdgate_loadtest.vet.delays import Delays

if TYPE_CHECKING:
    from herdgate_loadtest.vet.model import Client

__all__ = ["Attempt", "attempts_of"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """The wait before attempt `number`, and what it was drawn between; seconds."""

    number: int
    delay_s: float
    least_s: float
    longest_s: float


def attempts_of(client: "Client", count: int, seed: int) -> Iterator[Attempt]:
    """The first `count` attempts of an absence, told no time by the server; fewer if the client gives up before."""
    delays, rng, wait_s = Delays(client), random.Random(seed), 0.0
    for number in range(1, (count if client.max_retries is None else min(count, client.max_retries)) + 1):
        least_s, longest_s = delays.band_s(number, wait_s)
        wait_s = delays.delay_s(number, wait_s, rng)
        yield Attempt(number, wait_s, least_s, longest_s)
