"""Limits divided among processes: all shares together never come to more than the whole."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate import ClientLimits, ConfigurationError, Limits
from herdgate.core.numbers import LEAST_RATE

TIERS = ("client", "anonymous", "address", "network")

counts = st.integers(1, 200)
some_rates = st.just(0) | st.floats(1e-3, 1e6)
rates = st.none() | some_rates
bursts = st.none() | st.floats(1, 1e6)
caps = st.sampled_from([None, 0]) | st.integers(200, 10**9)
tiers = st.builds(ClientLimits, open=caps) | st.builds(ClientLimits, rate=some_rates, burst=bursts, open=caps)
limits = st.builds(
    Limits,
    rate=rates,
    burst=bursts,
    max_pending=caps,
    max_open=caps,
    client=tiers,
    anonymous=st.none() | tiers,
    address=tiers,
    network=tiers,
)


def check_share(share: float | None, whole: float | None, processes: int) -> None:
    """Together at most the whole; nobody stays nobody, somebody stays somebody, and no limit none."""
    assert (share is None) == (whole is None)
    if share is None or whole is None:
        return
    assert share * processes <= whole * (1 + 1e-12)
    assert bool(share) == bool(whole)


def check_burst(share: float | None, whole: float | None, processes: int) -> None:
    if share is None or whole is None:
        assert share is whole
    else:
        assert share == max(1.0, whole / processes)


@given(limits, counts)
def test_shares_come_to_the_whole_at_most(whole: Limits, processes: int) -> None:
    share = whole.divided(processes)
    check_burst(share.burst, whole.burst, processes)
    for name in ("rate", "max_pending", "max_open"):
        check_share(getattr(share, name), getattr(whole, name), processes)
    for name in TIERS:
        part, tier = getattr(share, name), getattr(whole, name)
        assert (part is None) == (tier is None)
        if tier is not None:
            check_burst(part.burst, tier.burst, processes)
            check_share(part.rate, tier.rate, processes)
            check_share(part.open, tier.open, processes)


def test_one_process_has_it_all() -> None:
    whole = Limits(rate=5, burst=3, max_open=7, client=ClientLimits(rate=1, burst=2, open=1))
    assert whole.divided(1) == whole


def test_caps_are_rounded_down() -> None:
    share = Limits(rate=10, max_open=11, max_pending=4, client=ClientLimits(open=7)).divided(4)
    assert (share.rate, share.max_open, share.max_pending, share.client.open) == (2.5, 2, 1, 1)


def test_burst_is_never_below_one() -> None:
    share = Limits(rate=10, burst=2, client=ClientLimits(rate=1, burst=8)).divided(4)
    assert (share.burst, share.client.burst) == (1.0, 2.0)


def test_what_holds_for_each_process_or_key_anyway_is_not_divided() -> None:
    kept: dict[str, Any] = {
        "max_memory_bytes": 10**9,
        "max_clients": 10,
        "admit_fraction": 0.5,
        "hold_s": 1,
        "grace_s": 30,
        "hint_cap_s": 20,
        "horizon_s": 300,
    }
    share = Limits(rate=10, **kept).divided(3)
    assert {name: getattr(share, name) for name in kept} == kept


@pytest.mark.parametrize(
    ("whole", "line"),
    [
        (
            Limits(rate=1, max_open=3),
            "max_open: got 3; write 4 or more for 4 processes, 0 for nobody, or None for no limit",
        ),
        (
            Limits(rate=1, max_pending=1),
            "max_pending: got 1; write 4 or more for 4 processes, 0 for nobody, or None for no limit",
        ),
        (
            Limits(rate=1, client=ClientLimits(open=1)),
            "client.open: got 1; write 4 or more for 4 processes, 0 for nobody, or None for no limit",
        ),
        (Limits(rate=LEAST_RATE), "rate: got 1e-09; write 4e-09 or more for 4 processes"),
        (
            Limits(rate=1, address=ClientLimits(rate=LEAST_RATE)),
            "address.rate: got 1e-09; write 4e-09 or more for 4 processes",
        ),
    ],
)
def test_limit_too_small_to_share_is_an_error_and_not_nobody(whole: Limits, line: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        whole.divided(4)
    assert str(raised.value) == line


@pytest.mark.parametrize("processes", [0, -1, 1.5, 2.0, True, None, "2", math.nan, math.inf, 10_001, 10**400])
def test_number_of_processes_is_a_whole_number_from_one(processes: Any) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Limits(rate=1).divided(processes)
    assert raised.value.field == "processes"
