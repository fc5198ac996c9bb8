"""How long a client waits: arithmetic of strategies, for any settings."""

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_loadtest.vet.attempts import attempts_of
from herdgate_loadtest.vet.delays import LONGEST_S, Delays
from herdgate_loadtest.vet.model import Client, Strategy

SEED = 5
STRATEGIES: list[Strategy] = ["none", "full", "equal", "proportional", "decorrelated"]

clients = st.builds(
    Client,
    strategy=st.sampled_from(STRATEGIES),
    jitter=st.floats(0, 1),
    initial_s=st.floats(0, 1e4),
    multiplier=st.floats(0, 1000),
    cap_s=st.one_of(st.floats(0, 1e5), st.just(math.inf)),
    delays_s=st.one_of(st.just(()), st.lists(st.floats(0, 1e4), min_size=1, max_size=5).map(tuple)),
    offset_s=st.floats(0, 100),
    least_s=st.floats(0, 100),
    first_at_once=st.booleans(),
    first_window_s=st.one_of(st.none(), st.floats(0, 1e3)),
    jitter_from=st.integers(1, 5),
    jitter_before_cap=st.booleans(),
    caps_first=st.booleans(),
    language=st.sampled_from([None, "go", "java", "js", "python"]),
)


def delays_of(client: Client, count: int, seed: int = SEED) -> list[float]:
    return [each.delay_s for each in attempts_of(client, count, seed)]


@given(client=clients, seed=st.integers(0, 1000))
def test_any_delay_is_within_its_band_and_no_nonsense(client: Client, seed: int) -> None:
    for attempt in attempts_of(client, 30, seed):
        assert not math.isnan(attempt.delay_s)
        assert attempt.delay_s >= 0
        assert attempt.least_s <= attempt.delay_s <= attempt.longest_s * (1 + 1e-9)


@given(client=clients, attempt=st.integers(3, 5000))
def test_no_delay_is_beyond_the_cap(client: Client, attempt: int) -> None:
    _, longest_s = Delays(client).band_s(attempt, 10.0)
    if not client.delays_s and client.language is None:
        assert longest_s <= client.cap_s


@given(client=clients)
def test_the_same_seed_gives_the_same_delays(client: Client) -> None:
    assert delays_of(client, 12) == delays_of(client, 12)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("language", [None, "go", "java", "js", "python"])
def test_case_7_1_capped_first_is_finite_positive_and_grows_for_5000_attempts(
    strategy: Strategy, language: None
) -> None:
    client = Client(strategy=strategy, initial_s=0.1, multiplier=2, cap_s=30, language=language)
    attempts = list(attempts_of(client, 5000, SEED))
    assert all(0 < each.delay_s <= 30 for each in attempts)
    if strategy != "decorrelated":
        assert all(one.longest_s <= other.longest_s for one, other in itertools.pairwise(attempts))


@pytest.mark.parametrize(
    ("language", "attempt", "delay_s"),
    [
        ("go", 34, 30),
        ("go", 35, 0),
        ("java", 22, 30),
        ("java", 23, 0),
        ("python", 1024, 30),
        ("python", 1025, math.inf),
    ],
)
def test_case_7_1_the_power_before_the_cap_overflows_in_its_language(
    language: str, attempt: int, delay_s: float
) -> None:
    client = Client(strategy="none", caps_first=False, least_s=0, language=language)  # type: ignore[arg-type]
    assert Delays(client).delay_s(attempt, 0, random.Random(SEED)) == delay_s


def test_case_7_1_a_timer_of_javascript_without_a_cap_fires_at_once() -> None:
    client = Client(strategy="none", cap_s=math.inf, least_s=0, language="js")
    delays = delays_of(client, 23)
    assert delays[21] == 2.0**21
    assert delays[22] == 0


def test_a_share_of_infinity_is_no_number_in_javascript() -> None:
    client = Client(
        strategy="proportional", cap_s=5, caps_first=False, jitter_before_cap=True, least_s=0, language="js"
    )
    delays = delays_of(client, 1100)
    assert (delays[1014], delays[1015]) == (5, 0), "1,000 ms times 2 ** 1015 is infinite"
    assert delays[1050] == 0


@pytest.mark.parametrize(
    ("strategy", "bands"),
    [
        ("none", [(1, 1), (2, 2), (4, 4), (8, 8), (10, 10)]),
        ("full", [(0.1, 1), (0.1, 2), (0.1, 4), (0.1, 8), (0.1, 10)]),
        ("equal", [(0.5, 1), (1, 2), (2, 4), (4, 8), (5, 10)]),
        ("proportional", [(0.5, 1.5), (1, 3), (2, 6), (4, 10), (5, 10)]),
    ],
)
def test_bands_of_a_strategy(strategy: Strategy, bands: list[tuple[float, float]]) -> None:
    delays = Delays(Client(strategy=strategy, jitter=0.5, cap_s=10))
    assert [delays.band_s(attempt, 0) for attempt in range(1, 6)] == bands


def test_decorrelated_is_drawn_up_to_three_times_the_wait_before() -> None:
    delays = Delays(Client(strategy="decorrelated", cap_s=10))
    assert [delays.band_s(2, before_s) for before_s in (0, 1, 2, 5)] == [(1, 3), (1, 3), (1, 6), (1, 10)]


def test_the_whole_band_is_used() -> None:
    delays, rng = Delays(Client()), random.Random(SEED)
    drawn = [delays.delay_s(3, 0, rng) for _ in range(2000)]
    assert min(drawn) < 0.15
    assert max(drawn) > 3.9


def test_jitter_before_the_cap_piles_up_on_the_cap() -> None:
    delays, rng = Delays(Client(jitter_before_cap=True, cap_s=10)), random.Random(SEED)
    drawn = [delays.delay_s(8, 0, rng) for _ in range(1000)]
    assert drawn.count(10) > 800


def test_a_list_of_delays_repeats_its_last_one() -> None:
    assert delays_of(Client(strategy="none", delays_s=(0.01, 0.05, 2.0), least_s=0), 5) == [0.01, 0.05, 2, 2, 2]


def test_first_at_once_and_first_window_come_before_the_schedule() -> None:
    client = Client(strategy="none", first_at_once=True, first_window_s=5, least_s=0, initial_s=3, cap_s=10)
    bands = [Delays(client).band_s(attempt, 0) for attempt in range(1, 6)]
    assert bands == [(0, 0), (0, 5), (3, 3), (6, 6), (10, 10)]


def test_jitter_begins_with_the_attempt_that_is_said() -> None:
    bands = [Delays(Client(jitter_from=3)).band_s(attempt, 0) for attempt in (1, 2, 3)]
    assert bands == [(1, 1), (2, 2), (0.1, 4)]


def test_without_a_cap_a_delay_grows_to_a_bound() -> None:
    assert Delays(Client(strategy="none", cap_s=math.inf)).band_s(5000, 0) == (LONGEST_S, LONGEST_S)


def test_attempts_end_where_the_client_gives_up() -> None:
    assert len(delays_of(Client(max_retries=4), 100)) == 4
