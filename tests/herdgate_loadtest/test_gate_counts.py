"""Counts of a gateway, out of its status."""

from typing import Any

import pytest

from herdgate_loadtest.gate_counts import GateCounts, counts_since

CHAT = {"admitted": 5, "denied": {"rate": 2, "full": 1}, "pending": 1, "open": 3, "held": 2}
FEED = {"admitted": 1, "denied": {}, "pending": 0, "open": 1, "held": 0}


def status(**gates: Any) -> dict[str, Any]:
    return {"gates": gates, "age_s": 0.5}


def test_counts_are_those_of_all_gates() -> None:
    told = counts_since(status(chat=CHAT, feed=FEED), asked_at=100, since=90)
    assert told == GateCounts(admitted=6, denied=3, permits=7)


@pytest.mark.parametrize(("asked_at", "is_new"), [(90.7, False), (90.81, True)])
def test_counts_of_before_are_none(asked_at: float, is_new: bool) -> None:
    """They are half a second old, and a process of the gateway tells its own up to 0.3 s later."""
    assert (counts_since(status(chat=CHAT), asked_at=asked_at, since=90.0) is not None) is is_new


def test_gateway_that_publishes_nothing_yet_has_no_counts() -> None:
    assert counts_since(status(), asked_at=100, since=0) is None
