"""What makes processes a fleet: one Redis, one name."""

import re
from dataclasses import dataclass, field
from typing import Literal

from herdgate.core.errors import ConfigurationError
from herdgate.core.numbers import check_number, check_rate

__all__ = ["Fail", "Fleet"]

Fail = Literal["local_share", "closed", "open"]
"""What becomes of arrivals while Redis is away: this process's share is admitted, or nobody, or everybody."""

FAILS: tuple[Fail, ...] = ("local_share", "closed", "open")
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
        ConfigurationError: one of these is not of its kind.
    """

    redis: str = field(repr=False)  # it may hold a password
    name: str = "default"
    fail: Fail = "local_share"
    rate_min: float | None = None
    setup_target_s: float = 1.0
    pending_target: float = 0.1

    def __post_init__(self) -> None:
        if not isinstance(self.redis, str):
            raise ConfigurationError(
                "redis", f"a {type(self.redis).__name__}", 'write a URL, as in "redis://host:6379"'
            )
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ConfigurationError("fleet", self.name, "write a name of 1 to 64 letters, digits, ., - and _")
        if self.fail not in FAILS:
            raise ConfigurationError("fail", self.fail, f"write {', '.join(FAILS[:-1])} or {FAILS[-1]}")
        check_rate("rate_min", self.rate_min, unit="a number of admissions per second")
        check_number("setup_target_s", self.setup_target_s, least=0.001, most=3_600, unit="seconds")
        check_number("pending_target", self.pending_target, least=0.001, most=1, unit="a share of the capacity")
