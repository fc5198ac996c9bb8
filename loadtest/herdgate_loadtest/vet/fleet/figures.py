"""Everything that is played with a fleet, as figures."""

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from herdgate_loadtest.vet.fleet.cut import CLIENTS, IDEAL_S, Crowd, come_back
from herdgate_loadtest.vet.fleet.outage import (
    broken_delays,
    flap_waits_s,
    hopeless_tries,
    lost_on_restart,
    sustained_rate,
)
from herdgate_loadtest.vet.fleet.together import aligned_share, peak_share

if TYPE_CHECKING:
    from herdgate_loadtest.vet.model import Client

__all__ = ["Figures", "play"]


@dataclass(frozen=True, slots=True)
class Figures:
    """What a fleet did; `BOUNDS` says what most of them are.

    Attributes:
        last_back_s: seconds until the last one was back.
        gave_up: part of the fleet, 0 to 1, that did not come back.
        flap_wait_s: seconds until the next try of a client whose sockets open and are dropped, over and over.
    """

    peak_share: float
    tries_per_client: float
    tail_ratio: float
    last_back_s: float
    gave_up: float
    at_once_share: float
    sustained_rate: float
    flap_ratio: float
    flap_wait_s: float
    early_share: float
    sockets_per_client: float
    hopeless_tries: float
    lost_on_restart: float
    broken_delays: float
    aligned_share: float


def play(client: "Client", seed: int) -> Figures:
    """Play every scene with a fleet of `client`; the same seed gives the same figures."""
    rng = random.Random(seed)
    crowd = come_back(client, rng, hints=False)
    told = come_back(client, rng, hints=True)
    refused_s, dropped_s = flap_waits_s(client, rng)
    return Figures(
        peak_share=peak_share(client, rng),
        tries_per_client=crowd.tries / CLIENTS,
        tail_ratio=_tail_ratio(crowd),
        last_back_s=crowd.last_back_s,
        gave_up=1 - len(crowd.back) / CLIENTS,
        at_once_share=crowd.at_once / max(crowd.waits, 1),
        sustained_rate=sustained_rate(client, rng),
        flap_ratio=1.0 if math.isinf(refused_s) else refused_s / dropped_s,
        flap_wait_s=dropped_s,
        early_share=told.early / max(told.told, 1),
        sockets_per_client=crowd.sockets / max(len(crowd.back), 1),
        hopeless_tries=hopeless_tries(client, rng),
        lost_on_restart=lost_on_restart(client),
        broken_delays=broken_delays(client),
        aligned_share=aligned_share(client),
    )


def _tail_ratio(crowd: Crowd) -> float:
    return crowd.last_back_s / (3 * IDEAL_S + 2 * crowd.longest_wait_s)
