"""How long the slowest drain of a rollout takes, against a rollout that is played lot by lot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_gateway.deployments.rules.drains import Drain, rollout_s


def played(moving_s: float, copies: int, at_once: int, apart_s: float) -> float:
    """Lots one after the other, all closed at one pace, first come first served."""
    free_at, slowest_s, begins = 0.0, 0.0, 0.0
    while copies:
        lot = min(at_once, copies)
        free_at = max(free_at, begins) + lot * moving_s
        slowest_s = max(slowest_s, free_at - begins)
        copies, begins = copies - lot, begins + apart_s
    return slowest_s


@given(
    sockets=st.integers(0, 100_000),
    copies=st.integers(1, 200),
    at_once=st.integers(1, 50),
    apart_s=st.floats(0, 1_000),
)
def test_slowest_drain_is_that_of_the_rollout_played(sockets: int, copies: int, at_once: int, apart_s: float) -> None:
    drain = Drain("call", 60, 15, sockets, 100)
    assert rollout_s(drain, copies, at_once, apart_s) == pytest.approx(
        played(drain.moving_s, copies, at_once, apart_s), abs=1e-6
    )
