"""How many come back within a tenth of a second of each other.

A server that hangs and dies takes with it everybody whose handshake it holds: clients that are cut off in the same
instant not for the first time, but at a later attempt. So the worst moment is looked for at each of them.
"""

from typing import TYPE_CHECKING

from herdgate_loadtest.vet.delays import Delays
from herdgate_loadtest.vet.fleet.cut import CLIENTS

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from herdgate_loadtest.vet.model import Client

__all__ = ["ATTEMPTS", "WINDOW_S", "aligned_share", "peak_share"]

WINDOW_S = 0.1
ATTEMPTS = 12


def peak_share(client: "Client", rng: "random.Random") -> float:
    """The largest part of the fleet, 0 to 1, within any window after a cut at any of the first attempts."""
    delays = Delays(client)
    waits_s = [0.0] * CLIENTS
    most = 0.0
    for attempt in range(1, (ATTEMPTS if client.max_retries is None else min(ATTEMPTS, client.max_retries)) + 1):
        waits_s = [delays.delay_s(attempt, before_s, rng) for before_s in waits_s]
        most = max(most, _busiest(sorted(waits_s)) / CLIENTS)
    return most


def _busiest(moments_s: "Sequence[float]") -> int:
    most, first = 0, 0
    for last, moment_s in enumerate(moments_s):
        while moment_s - moments_s[first] > WINDOW_S:
            first += 1
        most = max(most, last - first + 1)
    return most


def aligned_share(client: "Client") -> float:
    """The part of the fleet, 0 to 1, within a window at a moment of its schedule."""
    if not client.is_aligned or client.max_retries == 0:
        return 0.0
    return min(1.0, WINDOW_S / client.schedule_spread_s) if client.schedule_spread_s else 1.0
