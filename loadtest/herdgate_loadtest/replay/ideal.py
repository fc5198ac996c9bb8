"""What a perfect gate would do with the arrivals of a trace, and by how much a real one admitted too many.

Rules: pure; a token bucket of `burst` tokens that begins full and gets `rate` a second.
"""

from collections.abc import Sequence

__all__ = ["beyond_bucket", "ideal_s"]


def ideal_s(arrivals_s: Sequence[float], *, rate: float, burst: float) -> float:
    """When the last one would be in, if everybody came in the moment there is a token; 0 of none."""
    tokens, now = burst, 0.0
    for arrival in sorted(arrivals_s):
        if arrival > now:
            tokens, now = min(burst, tokens + (arrival - now) * rate), arrival
        if tokens < 1:
            now += (1 - tokens) / rate
            tokens = 1.0
        tokens -= 1
    return now


def beyond_bucket(admissions_s: Sequence[float], *, rate: float, burst: float) -> float:
    """Admissions above `burst` + `rate` times its length in the worst of all windows; 0 or less: the bucket held."""
    level, before, worst = 0.0, 0.0, -burst
    for moment in sorted(admissions_s):
        level = max(0.0, level - (moment - before) * rate) + 1
        before = moment
        worst = max(worst, level - burst)
    return worst
