"""What is told of a drain."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from herdgate_gateway.drain.plan import Trigger

__all__ = ["STATES", "DrainState", "DrainStatus", "sum_of"]

DrainState = Literal["waiting", "draining", "drained"]

STATES: tuple[DrainState, ...] = ("waiting", "draining", "drained")
"""In the order they come."""


@dataclass(frozen=True, slots=True)
class DrainStatus:
    """A drain at one moment.

    Attributes:
        state: `waiting` for its turn: arrivals that come all the same are let in; `drained`: nobody is left.
        trigger: what began it.
        since_s: seconds since then.
        left_s: seconds until its deadline; 0 after it.
        open: sockets that are open.
    """

    state: DrainState
    trigger: Trigger
    since_s: float
    left_s: float
    open: int


def sum_of(drains: Iterable[DrainStatus]) -> DrainStatus | None:
    """Those of several processes as one, which is as far as the last of them."""
    known = list(drains)
    if not known:
        return None
    last = min(known, key=lambda drain: STATES.index(drain.state))
    left_s, since_s = max(drain.left_s for drain in known), max(drain.since_s for drain in known)
    return DrainStatus(last.state, last.trigger, since_s, left_s, sum(drain.open for drain in known))
