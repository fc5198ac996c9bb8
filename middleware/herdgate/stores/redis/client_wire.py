"""What goes to `clients.lua` and what comes back.

Names of keys are `<route>:<tier>:<client key>`; the script puts them behind the fleet's prefix. Times are whole
microseconds: those of a fleet that has lived for years are exact in the doubles of Lua.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from herdgate.core.tiers import Tier

__all__ = ["NO_PLACE", "CapAsk", "ClientAsk", "RateAsk", "Told", "cap_of", "pack_call", "rate_of", "read_told"]

US = 1_000_000
NO_PLACE = ""
"""In the place of a place: the caps are looked at, and nothing is taken."""


class RateAsk(NamedTuple):
    """A rate that an arrival has to be within (GCRA): microseconds between arrivals, 0 for none ever; and tolerance."""

    name: str
    interval_us: int
    tolerance_us: int


class CapAsk(NamedTuple):
    """A number of sockets that an arrival has to be below."""

    name: str
    cap: int


class ClientAsk(NamedTuple):
    """One arrival: the place it takes, what charges it, what caps it."""

    place: str
    rates: Sequence[RateAsk]
    caps: Sequence[CapAsk]


class Told(NamedTuple):
    """The answer to one arrival.

    Attributes:
        over: position of the rate it is over; None: it is within all.
        wait_s: seconds until it is not.
        is_full: a cap is reached.
    """

    over: int | None = None
    wait_s: float = 0.0
    is_full: bool = False


def rate_of(route: str, tier: Tier) -> RateAsk | None:
    """What a tier says about the rate; None: nothing."""
    rate = tier.limits.rate
    if rate is None:
        return None
    interval_us = max(1, round(US / rate)) if rate else 0
    return RateAsk(_name(route, tier), interval_us, round((burst_of(tier) - 1) * interval_us))


def burst_of(tier: Tier) -> float:
    """Arrivals at once; 1 without a rate."""
    limits = tier.limits
    return max(1.0, limits.rate or 0.0) if limits.burst is None else limits.burst


def cap_of(route: str, tier: Tier) -> CapAsk | None:
    """What a tier says about sockets; None: nothing."""
    return None if tier.limits.open is None else CapAsk(_name(route, tier), tier.limits.open)


def pack_call(
    asks: Sequence[ClientAsk],
    *,
    drop: Iterable[tuple[str, Sequence[str]]] = (),
    put: Iterable[tuple[str, Sequence[str]]] = (),
    renew: Iterable[tuple[str, Sequence[str]]] = (),
    **times: int,
) -> str:
    """The argument of a call.

    Args:
        drop: places, and the sets they are in, that are free again.
        put: those that are taken whatever the caps say.
        renew: those that go on.
        times: `now_us`, in tests.
    """
    call: dict[str, Any] = {"asks": asks, "drop": list(drop), "put": list(put), "renew": list(renew), **times}
    return json.dumps(call, separators=(",", ":"))


def read_told(reply: Sequence[int]) -> tuple[int, list[Told]]:
    """How many renewed places had gone and were put back; and the answers, in the order of the asks."""
    lost, *numbers = reply
    return lost, [_told(code, wait_us) for code, wait_us in zip(numbers[::2], numbers[1::2], strict=True)]


def _told(code: int, wait_us: int) -> Told:
    if code > 0:
        return Told(over=code - 1, wait_s=wait_us / US)
    return Told(is_full=code < 0)


def _name(route: str, tier: Tier) -> str:
    return f"{route}:{tier.name}:{tier.key}"
