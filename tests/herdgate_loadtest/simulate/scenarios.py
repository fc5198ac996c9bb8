"""Scenarios for tests: small, and what came of them."""

from typing import Any

from herdgate.core.limits import Limits
from herdgate_loadtest.simulate.herd import simulate
from herdgate_loadtest.simulate.outcome import Outcome
from herdgate_loadtest.simulate.scenario import Scenario

__all__ = ["outcome_of", "played"]


def played(clients: int = 1_000, rate: float = 100, behaviour: str = "obey", **settings: Any) -> Scenario:
    """One kind of client; settings of the calendar go to its limits."""
    names = {"burst", "hold_s", "grace_s", "hint_cap_s", "horizon_s"} & settings.keys()
    limits = Limits(rate=rate, **{name: settings.pop(name) for name in names})
    return Scenario(clients, limits, {behaviour: 1.0}, **settings)


def outcome_of(*arguments: Any, **settings: Any) -> Outcome:
    """What comes of it."""
    return simulate(played(*arguments, **settings))
