"""How long a client waits: the arithmetic."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_client import ConfigurationError
from herdgate_client.pace import FLOOR_S, Pace
from herdgate_client.told import LONGEST_TOLD_S, NOTHING, Told

SECONDS = st.floats(min_value=1e-9, max_value=86_400)
FAILURES = st.one_of(st.integers(0, 40), st.integers(0, 10**9))
RANDOMS = st.randoms(use_true_random=False)
TOLD = st.floats(min_value=0, max_value=LONGEST_TOLD_S)


@given(base_s=SECONDS, cap_s=SECONDS, failures=FAILURES, rng=RANDOMS)
def test_untold_wait_is_within_floor_and_cap(base_s: float, cap_s: float, failures: int, rng: random.Random) -> None:
    waited = Pace(base_s, cap_s).wait_s(NOTHING, failures, rng)
    assert min(FLOOR_S, cap_s) <= waited <= cap_s


@given(base_s=SECONDS, cap_s=SECONDS, failures=FAILURES)
def test_longest_wait_never_falls_and_doubles_until_the_cap(base_s: float, cap_s: float, failures: int) -> None:
    pace = Pace(base_s, cap_s)
    (_, now), (_, then) = pace.range_s(failures), pace.range_s(failures + 1)
    assert then >= now
    if now > FLOOR_S and then < cap_s:
        assert then == 2 * now


@given(delay_s=TOLD, failures=FAILURES, rng=RANDOMS)
def test_exact_delay_is_kept_to_the_letter(delay_s: float, failures: int, rng: random.Random) -> None:
    assert Pace().wait_s(Told(delay_s, exact=True), failures, rng) == delay_s


@given(delay_s=TOLD, failures=FAILURES, rng=RANDOMS)
def test_delay_told_to_many_is_never_shortened_and_spread(delay_s: float, failures: int, rng: random.Random) -> None:
    pace = Pace()
    shortest, longest = pace.range_s(failures)
    assert delay_s + shortest <= pace.wait_s(Told(delay_s), failures, rng) <= delay_s + longest


def test_five_thousand_failures_stay_at_the_cap() -> None:
    pace = Pace(base_s=0.1, cap_s=30)
    longest = [pace.range_s(failures)[1] for failures in range(5_001)]
    assert longest[:4] == [0.1, 0.2, 0.4, 0.8]
    assert longest == sorted(longest)
    assert set(longest[9:]) == {30}


def test_first_wait_is_spread_evenly() -> None:
    rng = random.Random(1)
    waits = sorted(Pace().wait_s(NOTHING, 0, rng) for _ in range(10_000))
    furthest = max(abs(wait - (0.1 + 0.9 * place / 10_000)) for place, wait in enumerate(waits))
    assert furthest < 0.02  # Kolmogorov-Smirnov, 0.1 %: 0.0195 of the range of 0.9


@pytest.mark.parametrize("field", ["base_s", "cap_s", "stable_s"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), 86_401, 10**99, True, "1", None])
def test_setting_that_cannot_be_right_is_named(field: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=f"^{field}: got .*; write seconds") as wrong:
        Pace(**{field: value})  # type: ignore[arg-type]
    assert wrong.value.field == field
