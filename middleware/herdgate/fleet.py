"""What makes processes a fleet: one Redis, one name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from herdgate.core.errors import ConfigurationError
from herdgate.core.numbers import MOST_RATE, check_number, check_rate
from herdgate.stores.links import PARENT_SCHEME
from herdgate.stores.redis.address import Address

__all__ = ["Fail", "Fleet"]

Fail = Literal["local_share", "closed", "open"]
"""What becomes of arrivals while Redis is away: this process's share is admitted, or nobody, or everybody."""

FAILS: tuple[Fail, ...] = ("local_share", "closed", "open")

MEANWHILE: Mapping[Fail, str] = MappingProxyType(
    {
        "local_share": "this process admits its share alone",
        "closed": "nobody is admitted",
        "open": "everyone is admitted",
    }
)
"""The same in words, for messages."""

_NAME = re.compile("[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class Fleet:
    """All processes that share one calendar.

    Attributes:
        redis: URL of their Redis: `redis://`, `rediss://`, `unix://`, `redis+sentinel://` or `redis+cluster://`.
        name: the same in all of them; letters, digits, `.`, `-` and `_`.
        fail: what becomes of arrivals while Redis is away.
        rate_min: the rate follows how the workers fare, between this and the rate of the limits: times 0.7 when one of
            them is over a target, up by 2 % a second when none is. None: it stays as set.
        setup_target_s: 95 of 100 set-ups at a worker should take no longer, seconds.
        pending_target: share of a worker's capacity that may be set-ups in progress.

    Raises:
        ConfigurationError: one of these is not of its kind; of the URL the message says which part is wrong.
    """

    redis: str = field(repr=False)  # it may hold a password
    name: str = "default"
    fail: Fail = "local_share"
    rate_min: float | None = None
    setup_target_s: float = 1.0
    pending_target: float = 0.1

    def __post_init__(self) -> None:
        if not isinstance(self.redis, str) or not self.redis.startswith(PARENT_SCHEME):
            Address.parse(self.redis)
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ConfigurationError("name", _quoted(self.name), "write 1 to 64 letters, digits, ., - and _")
        if self.fail not in FAILS:
            raise ConfigurationError("fail", _quoted(self.fail), f"write {', '.join(FAILS[:-1])} or {FAILS[-1]}")
        unit, none = "a number of admissions per second", "a rate that stays as set"
        check_number("rate_min", self.rate_min, least=0, most=MOST_RATE, unit=unit, none=none)
        check_rate("rate_min", self.rate_min, unit=unit)
        check_number("setup_target_s", self.setup_target_s, least=0.001, most=3_600, unit="seconds")
        check_number("pending_target", self.pending_target, least=0.001, most=1, unit="a share of the capacity")


def fleet_of(name: str, given: object) -> Fleet:
    """A fleet that is given as one, or as the URL of its Redis.

    Args:
        name: of the setting, for errors.

    Raises:
        ConfigurationError: it is neither.
    """
    if isinstance(given, Fleet):
        return given
    Address.parse(given, name)
    return Fleet(str(given))


def check_rate_min(fleet: Fleet, rate: float | None, name: str = "rate_min") -> None:
    """Check that the rate can move between the least and the one that is set.

    Args:
        name: of the setting, for errors.

    Raises:
        ConfigurationError: the least is above the one that is set.
    """
    if fleet.rate_min is not None and rate is not None and fleet.rate_min > rate:
        raise ConfigurationError(name, fleet.rate_min, f"write a number up to the rate, {rate:g}")


def _quoted(value: object) -> object:
    return repr(value) if isinstance(value, str) else value
