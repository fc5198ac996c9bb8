"""The part of a fleet's calendar that one gateway runs itself while Redis is away."""

import math
from collections.abc import Callable
from dataclasses import replace

from herdgate.core.calendar import Calendar
from herdgate.core.grant import Grant
from herdgate.core.limits import Limits
from herdgate.fleet import Fail
from herdgate.stores.memory import MemoryStore
from herdgate.stores.redis.wire import Ask, Reply

__all__ = ["answer_alone", "local_share"]


def local_share(limits: Limits, last: Reply | None, v: float, random: Callable[[], float], now: float) -> MemoryStore:
    """A calendar for this process alone.

    At the last known rate divided by the last known gateways; without a burst, for the fleet's may be used up; and
    behind the firm slots the fleet has promised, whose holders come to any gateway and are let in at their time.

    Args:
        limits: of the whole fleet.
        last: the last reply; None: Redis has never answered, and nothing is known of other gateways.
        v: refill time of the fleet by now, as far as can be told; what tickets count in.
    """
    gateways = max(1, last.gateways) if last else 1
    rate, first_rate = (last.rate, last.first_rate) if last else (limits.rate or 0.0,) * 2
    burst = last.burst if last else limits.burst or max(1.0, rate)
    share = replace(limits, rate=first_rate / gateways, burst=max(1.0, burst / gateways))
    store = MemoryStore(share, random, now, math.floor(v * 1000))
    calendar = store.calendar
    assert isinstance(calendar, Calendar)
    if last:
        calendar.succeed(last.issuer, max(0.0, last.firm - v))
    store.set_rate(rate / gateways, now)
    return store


def answer_alone(local: MemoryStore, fail: Fail, ask: Ask, now: float) -> Grant:
    """What one process says to an arrival, by itself and by what the fleet's settings want of it then."""
    if fail == "open" and ask.mode in ("arrive", "reserve"):
        return Grant(True)
    if fail == "closed" or ask.mode == "hint":
        return local.hint(now, ask.shown, ask.klass)
    if ask.mode == "defer":
        return local.defer(now, ask.klass)
    answer = local.calendar.arrive if ask.mode == "arrive" else local.calendar.reserve
    return answer(now, ask.shown, ask.klass)
