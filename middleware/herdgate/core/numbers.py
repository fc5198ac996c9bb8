"""Checks of numbers in settings: errors name the field and the way out."""

import math

from herdgate.core.errors import ConfigurationError

__all__ = ["LEAST_RATE", "MOST_RATE", "check_number", "check_rate"]

LEAST_RATE, MOST_RATE = 1e-9, 1_000_000_000
"""Rates are 0 or in here, so that no time computed from one overflows."""


def check_number(
    name: str, value: object, *, unit: str, least: float, most: float = math.inf, none: str = "", whole: bool = False
) -> None:
    """Check one numeric setting.

    Args:
        none: what None means; empty: it is not allowed.
        whole: it must be an int.

    Raises:
        ConfigurationError: not a finite number from `least` to `most`.
    """
    if value is None and none:
        return
    kinds = int if whole else (int, float)
    # Compared and not asked for isfinite, which fails for an int too large for a float; NaN is in no range.
    if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most or value == math.inf:
        bounds = f"{least:_} or more" if most == math.inf else f"from {least:_} to {most:_}"
        shown = repr(value) if isinstance(value, str) else value  # "5" is not 5
        raise ConfigurationError(name, shown, f"write {unit}, {bounds}" + (f", or None for {none}" if none else ""))


def check_rate(name: str, value: object, *, unit: str) -> None:
    """Check a rate per second: None, 0, or a number that times can be computed from.

    Raises:
        ConfigurationError: it is none of these.
    """
    check_number(name, value, least=0, most=MOST_RATE, unit=unit, none="no limit")
    if isinstance(value, (int, float)) and 0 < value < LEAST_RATE:
        raise ConfigurationError(name, value, f"write 0 for nobody, or {LEAST_RATE} or more")
