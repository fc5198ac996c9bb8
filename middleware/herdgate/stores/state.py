"""What a store says of its calendar, for those who look in."""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["CalendarState"]


class CalendarState(NamedTuple):
    """A calendar at one moment.

    Attributes:
        rate, burst, tokens: None without a rate.
        firm_s: seconds of refill set aside for firm slots.
        classes: name, hints outstanding and show rate of each.
    """

    rate: float | None
    burst: float | None
    tokens: float | None
    firm_s: float
    classes: Sequence[tuple[str, int, float]]
