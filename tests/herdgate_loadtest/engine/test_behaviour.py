"""How clients come back."""

import random

import pytest

from herdgate_loadtest.engine.answer import NO_ANSWER, Denial
from herdgate_loadtest.engine.behaviour import (
    BEHAVIOURS,
    Comeback,
    Fixed,
    Immediate,
    parse_behaviour,
    parse_clients,
)
from herdgate_loadtest.errors import ConfigurationError

SEED = 20
TOLD = Denial(delay_s=7.0, ticket="t1", status=429, reason="rate")


def comebacks(name: str, denial: Denial, *, tries: int = 1, count: int = 500) -> list[Comeback]:
    rng = random.Random(SEED)
    behaviour = parse_behaviour(name)
    return [behaviour.after(denial, tries, rng) for _ in range(count)]


@pytest.mark.parametrize(
    ("name", "denial", "least_s", "most_s", "ticket"),
    [
        ("obey", TOLD, 7.01, 7.3, "t1"),
        ("obey", Denial(delay_s=0.0, ticket="t1"), 0.01, 0.3, "t1"),
        ("obey", Denial(delay_s=7.0), 7.01, 7.3, None),
        ("obey", Denial(ticket="t1"), 0.1, 2.0, "t1"),
        ("obey", NO_ANSWER, 0.1, 2.0, None),
        ("prompt", TOLD, 7.0, 7.0, "t1"),
        ("prompt", Denial(delay_s=0.0), 0.0, 0.0, None),
        ("prompt", Denial(ticket="t1"), 0.1, 2.0, "t1"),
        ("hint", TOLD, 7.01, 7.3, None),
        ("hint", NO_ANSWER, 0.1, 2.0, None),
        ("jitter", TOLD, 0.1, 2.0, None),
        ("fixed", TOLD, 1.0, 1.0, None),
        ("fixed:15", TOLD, 15.0, 15.0, None),
        ("immediate", TOLD, 0.05, 0.05, None),
    ],
)
def test_comes_back_within_its_window_with_its_ticket(
    name: str, denial: Denial, least_s: float, most_s: float, ticket: str | None
) -> None:
    found = comebacks(name, denial)
    assert all(least_s <= comeback.delay_s <= most_s for comeback in found)
    assert {comeback.ticket for comeback in found} == {ticket}
    spread_s = max(comeback.delay_s for comeback in found) - min(comeback.delay_s for comeback in found)
    assert spread_s >= 0.9 * (most_s - least_s), "the whole window is used"


@pytest.mark.parametrize(("tries", "cap_s"), [(1, 2), (2, 4), (4, 16), (5, 30), (6, 30), (2000, 30)])
def test_full_jitter_doubles_up_to_its_cap_and_never_overflows(tries: int, cap_s: float) -> None:
    delays = [comeback.delay_s for comeback in comebacks("jitter", TOLD, tries=tries)]
    assert min(delays) >= 0.1
    assert 0.9 * cap_s <= max(delays) <= cap_s


def test_one_seed_gives_one_crowd() -> None:
    assert comebacks("obey", TOLD) == comebacks("obey", TOLD)


@pytest.mark.parametrize("name", [*BEHAVIOURS, "fixed:0.5", "fixed:15"])
def test_name_reads_back_as_the_same_behaviour(name: str) -> None:
    assert parse_behaviour(name).name == name


def test_plain_fixed_is_every_second() -> None:
    assert parse_behaviour("fixed") == Fixed(1.0) == parse_behaviour("fixed:1")
    assert parse_behaviour("immediate") == Immediate()


@pytest.mark.parametrize("text", ["", "polite", "Obey", "jitter:3", "obey:", "fixed:", "fixed:soon"])
def test_unknown_behaviour_is_refused_with_the_way_out(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"behaviour: got .*; write"):
        parse_behaviour(text)


@pytest.mark.parametrize("interval", ["0", "-1", "nan", "inf", "86400"])
def test_interval_must_be_a_sensible_number_of_seconds(interval: str) -> None:
    with pytest.raises(ConfigurationError, match="more than 0, at most 3600"):
        parse_behaviour(f"fixed:{interval}")


@pytest.mark.parametrize(
    ("text", "crowd"),
    [
        ("10000", {"obey": 10_000}),
        ("obey=900,fixed:15=100", {"obey": 900, "fixed:15": 100}),
        ("hint=1, jitter=2", {"hint": 1, "jitter": 2}),
        ("fixed=1,fixed:1=2", {"fixed": 3}),
    ],
)
def test_crowd_is_a_number_or_pairs(text: str, crowd: dict[str, int]) -> None:
    assert parse_clients(text) == crowd


@pytest.mark.parametrize("text", ["", "obey", "obey=", "obey=x", "obey=-1", "1.5", "obey=1;hint=2", "=5"])
def test_anything_else_is_no_crowd(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_clients(text)
