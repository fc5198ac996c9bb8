"""What is wrong with when a client comes back. Each function: the fault with its numbers, or None."""

import math

from herdgate_loadtest.vet.delays import Delays
from herdgate_loadtest.vet.model import Client, Language

__all__ = [
    "cap",
    "clamp",
    "first_attempt",
    "gives_up_soon",
    "growth",
    "jitter",
    "jitter_before_cap",
    "overflow",
    "unguarded",
]

LEAST_JITTER = 0.1
LEAST_WINDOW_S = 1 / 3  # three tenths of the fleet in a tenth of a second
LEAST_DELAY_S = 0.1
LEAST_MULTIPLIER = 1.2
LEAST_CAP_S = 10.0
LONG_OUTAGE_S = 300.0  # who gives up sooner is no load in a long outage
FEW_TRIES = 5  # what a doubling backoff makes, too, until a crowd is back

_DOUBLE = 1024.0
_MS = math.log2(1e3)
_OVERFLOW = {"go": 63 - math.log2(1e9), "java": 31 - _MS, "python": _DOUBLE, "js": 31 - _MS}
"""Binary logarithm of the seconds that are too many."""
_NUMBERS = {
    "go": "int64 nanoseconds wrap",
    "java": "int milliseconds wrap",
    "python": "float raises OverflowError",
    "js": "setTimeout takes 32 bits",
}


def jitter(client: Client) -> str | None:
    """Nothing random, or hardly anything."""
    if client.strategy == "proportional" and client.jitter < LEAST_JITTER:
        return f"jitter {client.jitter:g}: all come within {200 * client.jitter:g} % of the delay"
    if client.strategy == "decorrelated" and client.cap_s < (1 + LEAST_JITTER) / (1 - LEAST_JITTER) * client.initial_s:
        return f"the cap leaves hardly anything to draw from: {client.initial_s:g} s to {client.cap_s:g} s"
    if client.strategy != "none":
        return None
    if client.first_window_s:
        return "only the first delay is random: whoever is cut off later comes back together"
    return "every delay is the same for all"


def first_attempt(client: Client) -> str | None:
    """Everybody's first try at the same moment, though later ones are spread."""
    if client.first_at_once:
        return "first attempt synchronised: it comes at once, for all"
    if client.strategy == "none":
        return None  # what `jitter` says
    low, high = Delays(client).band_s(1, 0)
    if client.jitter_from > 1 and client.first_window_s is None:
        return f"first attempt synchronised: {high:g} s for all, jitter begins with attempt {client.jitter_from}"
    if high - low < LEAST_WINDOW_S:
        return f"first attempt synchronised: all within {high - low:.3g} s"
    return None


def growth(client: Client) -> str | None:
    """Delays that do not grow."""
    if client.delays_s:
        is_flat = client.delays_s[-1] <= client.delays_s[0] and min(client.delays_s) < LEAST_CAP_S
        return "the last delay is no longer than the first" if is_flat else None
    if client.multiplier >= LEAST_MULTIPLIER or client.strategy == "decorrelated":
        return None
    if client.initial_s >= LEAST_CAP_S and client.multiplier >= 1:
        return None  # as rare from the beginning as others are in the end
    return f"multiplier {client.multiplier:g}: the tenth delay is {client.multiplier**9:.2g} times the first"


def gives_up_soon(client: Client) -> bool:
    """Whether a client is gone before any growth would matter."""
    return client.max_retries is not None and client.max_retries <= FEW_TRIES


def cap(client: Client) -> str | None:
    """A longest delay that is too short."""
    longest_s = client.delays_s[-1] if client.delays_s else client.cap_s
    if longest_s >= LEAST_CAP_S or (client.max_retries or math.inf) * longest_s < LONG_OUTAGE_S:
        return None
    return f"after an hour each client still comes every {longest_s:g} s or sooner"


def jitter_before_cap(client: Client) -> str | None:
    """Draws that the cap cuts down to one value."""
    if not client.jitter_before_cap or client.strategy == "none" or math.isinf(client.cap_s) or client.delays_s:
        return None
    if client.max_retries is not None and _longest_s(client, client.max_retries) < client.cap_s:
        return None  # gives up before it reaches the cap
    return f"whatever is drawn beyond {client.cap_s:g} s becomes {client.cap_s:g} s exactly"


def _longest_s(client: Client, tries: int) -> float:
    """The longest wait that `tries` of one absence may come to; whoever grows has grown after a hundred."""
    delays, longest_s = Delays(client), 0.0
    for attempt in range(1, min(tries, 100) + 1):
        longest_s = max(longest_s, delays.band_s(attempt, longest_s)[1])
    return longest_s


def clamp(client: Client) -> str | None:
    """Delays that may be next to nothing."""
    least_s = min(Delays(client).band_s(attempt, 0)[0] for attempt in (1, 2, 3))
    return None if least_s >= LEAST_DELAY_S else f"a delay may be {1e3 * least_s:.3g} ms"


def overflow(client: Client) -> str | None:
    """A power that leaves the numbers of the client's language before the cap can hold it."""
    if client.caps_first and math.isfinite(client.cap_s):
        return None
    return _overflows_at(client)


def unguarded(client: Client) -> str | None:
    """The same, where nothing is said about which comes first."""
    if client.language is None:
        return None if client.caps_first or client.delays_s else "the power comes before the cap; say in which language"
    if "cap_before_power" in client.said or math.isinf(client.cap_s):
        return None
    return _overflows_at(client)


def _overflows_at(client: Client) -> str | None:
    if (
        client.language is None
        or client.delays_s
        or client.strategy == "decorrelated"
        or client.multiplier <= 1
        or client.initial_s == 0
    ):
        return None
    limit = _limit(client, client.language)
    if math.isinf(limit):
        return None
    attempt = 1 + math.ceil((limit - math.log2(client.initial_s)) / math.log2(client.multiplier))
    if client.max_retries is not None and attempt > client.max_retries:
        return None
    return f"{client.language}: {_NUMBERS[client.language]} at attempt {attempt:,}"


def _limit(client: Client, language: Language) -> float:
    if language != "js" or math.isinf(client.cap_s):
        return _OVERFLOW[language]
    # A double that is infinite is cut by the cap, unless a share of it is taken off before: that is no number.
    return _DOUBLE - _MS if client.jitter_before_cap and client.strategy == "proportional" else math.inf
