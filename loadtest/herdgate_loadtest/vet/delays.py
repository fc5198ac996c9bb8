"""How long a client waits before attempt number n of an absence, n from 1. Pure; the random source is an argument.

x is the delay before jitter: initial * multiplier ** (n - 1), at most the cap. Then, after M. Brooker, "Exponential
Backoff And Jitter" (AWS Architecture Blog, 2015):

| strategy | delay |
|---|---|
| `none` | x |
| `full` | uniform in [least, x] |
| `equal` | uniform in [x / 2, x] |
| `proportional` | uniform in [(1 - jitter) x, (1 + jitter) x], at most the cap |
| `decorrelated` | uniform in [initial, 3 times the delay before], at most the cap |

With `jitter_before_cap` the cap comes last, so that what is drawn beyond it falls on the cap itself. A client of a
language computes the power with that language's numbers, unless it caps first: `int64` nanoseconds in Go, `int`
milliseconds in Java, a double of milliseconds and a timer of 32 bits in JavaScript, a float of seconds that raises in
Python. 0: at once; infinite: never again.
"""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from herdgate_loadtest.vet.model import Client

__all__ = ["LONGEST_S", "Delays"]

LONGEST_S = 1e15
"""What exact arithmetic grows to, seconds."""

_INTEGERS_S = {"go": 2.0**63 / 1e9, "java": 2.0**31 / 1e3}
_JS_TIMER_S = (2.0**31 - 1) / 1e3  # setTimeout fires at once beyond it
_DOUBLE_LOG2 = 1024.0


class Delays:
    """The delays of one kind of client. Has no state but what it has worked out before, so one serves a fleet."""

    def __init__(self, client: "Client") -> None:
        self.client = client
        self._drawn: dict[int, tuple[float, float, float]] = {}

    def delay_s(self, attempt: int, previous_s: float, rng: "random.Random") -> float:
        """Seconds before `attempt` (1: the first), where the wait before was `previous_s`, 0 if there was none."""
        low, high, cap_s = self._between(attempt, previous_s)
        if high <= low or high == math.inf:
            return high if high == math.inf else min(high, cap_s)
        return min(low + (high - low) * rng.random(), cap_s)

    def band_s(self, attempt: int, previous_s: float) -> tuple[float, float]:
        """Least and longest delay that `delay_s` may give, in seconds; equal where nothing is random."""
        low, high, cap_s = self._between(attempt, previous_s)
        return (high, high) if high == math.inf else (min(low, cap_s), min(high, cap_s))

    def _between(self, attempt: int, previous_s: float) -> tuple[float, float, float]:
        """What a delay is drawn between, and the cap that holds it afterwards."""
        if self.client.strategy == "decorrelated":
            return _between(self.client, attempt, previous_s)
        found = self._drawn.get(attempt)
        if found is None:
            found = self._drawn[attempt] = _between(self.client, attempt, previous_s)
        return found


def _between(client: "Client", attempt: int, previous_s: float) -> tuple[float, float, float]:
    if client.first_at_once and attempt == 1:
        return 0.0, 0.0, 0.0
    step = attempt - client.first_at_once - (client.first_window_s is not None)
    if step == 0:
        window_s = client.first_window_s or 0.0
        return min(client.least_s, window_s), window_s, window_s
    low, high = _drawn_between(client, step, previous_s, is_jittered=attempt >= client.jitter_from)
    low, high, cap_s = low + client.offset_s, high + client.offset_s, _cap_s(client)
    if not client.jitter_before_cap and math.isfinite(high):
        low, high = min(low, cap_s), min(high, cap_s)
    least_s = min(client.least_s, cap_s)
    return max(low, least_s), max(high, least_s), cap_s


def _drawn_between(client: "Client", step: int, previous_s: float, *, is_jittered: bool) -> tuple[float, float]:
    x = _grown_s(client, step)
    if not client.jitter_before_cap and math.isfinite(x):
        x = min(x, _cap_s(client))
    if client.strategy == "none" or not is_jittered or math.isinf(x):
        return x, x
    if client.strategy == "decorrelated":
        return client.initial_s, max(client.initial_s, min(3 * max(previous_s, client.initial_s), LONGEST_S))
    if client.strategy == "full":
        return 0.0, x
    if client.strategy == "equal":
        return x / 2, x
    return (1 - client.jitter) * x, (1 + client.jitter) * x


def _cap_s(client: "Client") -> float:
    return math.inf if client.delays_s else client.cap_s


def _grown_s(client: "Client", step: int) -> float:
    """The delay before jitter and cap, as the client computes it."""
    steps = step - 1
    if client.delays_s:
        return client.delays_s[min(steps, len(client.delays_s) - 1)]
    if client.language is None or (client.caps_first and math.isfinite(client.cap_s)):
        return _exact_s(client, steps)
    if client.strategy == "decorrelated":  # grows from the delay before, without a power
        return client.initial_s
    return _in_language_s(client, steps)


def _exact_s(client: "Client", steps: int) -> float:
    if client.initial_s == 0 or client.multiplier == 0:
        return client.initial_s if steps == 0 else 0.0
    exponent = math.log(client.initial_s) + steps * math.log(client.multiplier)
    return LONGEST_S if exponent > math.log(LONGEST_S) else client.initial_s * client.multiplier**steps


def _in_language_s(client: "Client", steps: int) -> float:
    if client.initial_s == 0 or client.multiplier == 0:
        return client.initial_s if steps == 0 else 0.0
    exponent = math.log2(client.initial_s) + steps * math.log2(client.multiplier)
    most = _DOUBLE_LOG2 - (math.log2(1e3) if client.language == "js" else 0)
    x = 2.0**exponent if exponent < most else math.inf
    if client.language == "python":
        return x
    if client.language == "js":
        return _js_s(client, x)
    assert client.language is not None
    return x if x < _INTEGERS_S[client.language] else 0.0


def _js_s(client: "Client", x: float) -> float:
    if math.isinf(x) and client.jitter_before_cap and client.strategy == "proportional":
        return 0.0  # Infinity - Infinity is NaN, and NaN | 0 is 0
    x = min(x, LONGEST_S)
    return x if min(x, client.cap_s) <= _JS_TIMER_S else 0.0
