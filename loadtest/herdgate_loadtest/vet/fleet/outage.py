"""Servers that do not let anybody stay: away for ten minutes, letting in and dropping, refusing for good."""

import math
from typing import TYPE_CHECKING

from herdgate_loadtest.vet.delays import Delays

if TYPE_CHECKING:
    import random

    from herdgate_loadtest.vet.model import Client

__all__ = ["broken_delays", "flap_waits_s", "hopeless_tries", "lost_on_restart", "sustained_rate"]

_OUTAGE_S = 600.0
_REFUSAL_S = 0.05
_DROPPED_WITHIN_S = 5.0
_SAMPLE = 30
_FLAPS = 12
_FLAPPERS = 200
_MANY = 600
"""Tries of one client that are enough to know."""
_ATTEMPTS = 5000
_SPECIAL = 2  # the first ones may have rules of their own

_BAD_KEY = (1008,), (401, 403)
_RESTART = (1001, 1006, 1012, 1013), (502, 503)


def sustained_rate(client: "Client", rng: "random.Random") -> float:
    """Tries a second of one client in the second half of an outage, all its layers and triggers together."""
    if client.max_retries == 0:
        return 0.0
    if any(not stage.backoff for stage in client.stages):
        return client.tries_per_attempt / _REFUSAL_S
    triggers = client.triggers[:1] if client.shared_backoff else client.triggers
    rates = [1 / each.every_s if each.every_s and not client.shared_backoff else None for each in triggers]
    delays = Delays(client)
    own = sum(_late_tries(delays, rng) for _ in range(_SAMPLE)) / _SAMPLE / (_OUTAGE_S / 2)
    return client.tries_per_attempt * sum(own if rate is None else rate for rate in rates)


def _late_tries(delays: Delays, rng: "random.Random") -> int:
    most = delays.client.max_retries
    now_s = wait_s = 0.0
    late = 0
    for attempt in range(1, _MANY + 1 if most is None else min(_MANY, most) + 1):
        wait_s = delays.delay_s(attempt, wait_s, rng)
        now_s += wait_s + _REFUSAL_S
        if now_s > _OUTAGE_S:
            return late
        late += now_s > _OUTAGE_S / 2
    # Beyond the last try that was played, as before; one that has given up makes none.
    return late if most is not None and most <= _MANY else int(_MANY * _OUTAGE_S / 2 / now_s)


def flap_waits_s(client: "Client", rng: "random.Random") -> tuple[float, float]:
    """Mean wait after 12 refusals in a row, and after 12 sockets dropped within 5 s; seconds, the dial included."""
    failures = _FLAPS if client.max_retries is None else min(_FLAPS, client.max_retries)
    delays = Delays(client)
    refused = [_wait_after(delays, failures, rng, drops=False) for _ in range(_FLAPPERS)]
    dropped = [_wait_after(delays, failures, rng, drops=True) for _ in range(_FLAPPERS)]
    return _REFUSAL_S + sum(refused) / _FLAPPERS, _REFUSAL_S + sum(dropped) / _FLAPPERS


def _wait_after(delays: Delays, tries: int, rng: "random.Random", *, drops: bool) -> float:
    attempt, wait_s = 0, 0.0
    for _ in range(tries):
        if drops and _resets(delays.client, rng.uniform(0, _DROPPED_WITHIN_S)):
            attempt, wait_s = 0, 0.0
        attempt += 1
        wait_s = delays.delay_s(attempt, wait_s, rng)
    return wait_s


def _resets(client: "Client", alive_s: float) -> bool:
    """Whether a socket that lived so long, and carried nothing, begins the backoff anew."""
    return client.reset_on == "open" or (client.reset_on == "stable" and alive_s >= client.reset_after_s)


def hopeless_tries(client: "Client", rng: "random.Random") -> float:
    """Tries of one client in ten minutes at a server that has no use for its key (1008, 401, 403); 1: it understood."""
    codes, statuses = _BAD_KEY
    if not any(map(client.close_codes.retries, codes)) and not any(map(client.statuses.retries, statuses)):
        return 1.0
    delays, now_s, wait_s, tries = Delays(client), 0.0, 0.0, 1
    while tries < _MANY and (client.max_retries is None or tries <= client.max_retries):
        wait_s = delays.delay_s(tries, wait_s, rng)
        now_s += wait_s + _REFUSAL_S
        if now_s > _OUTAGE_S:
            break
        tries += 1
    return float(tries)


def lost_on_restart(client: "Client") -> float:
    """Of the ways to say that a server will be back, the part, 0 to 1, after which clients do not come back."""
    if client.max_retries == 0:
        return 0.0
    codes, statuses = _RESTART
    answers = [client.close_codes.retries(code) for code in codes] + [
        client.statuses.retries(each) for each in statuses
    ]
    return answers.count(False) / len(answers)


def broken_delays(client: "Client") -> float:
    """Of the first 5,000 attempts, those whose delay falls back below the one before, or that never come."""
    delays, broken, before_s = Delays(client), 0, 0.0
    grows = client.multiplier >= 1 and not client.delays_s
    attempts = _ATTEMPTS if client.max_retries is None else min(_ATTEMPTS, client.max_retries)
    for attempt in range(1, attempts + 1 if grows else 1):
        _, longest_s = delays.band_s(attempt, before_s)
        if attempt > _SPECIAL:
            broken += longest_s < 0.5 * before_s or math.isinf(longest_s)
            before_s = max(before_s, longest_s)
    return float(broken)
