"""The simulated fleet: what each scene sees, without the rules."""

import ast
import math
import random
from pathlib import Path
from typing import Any

import pytest

import herdgate_loadtest.vet.fleet
import herdgate_loadtest.vet.rules
from herdgate_loadtest.vet.fleet import BOUNDS, exceeded, play
from herdgate_loadtest.vet.fleet.cut import CLIENTS, IDEAL_S, RATE, come_back
from tests.herdgate_loadtest.vet.vetting import SOUND, client

SEED = 3


def beyond(**change: Any) -> set[str]:
    settings = {name: value for name, value in {**SOUND, **change}.items() if value is not None}
    return {each.figure for each in exceeded(play(client(**settings), SEED))}


def test_a_sound_fleet_is_within_every_bound() -> None:
    assert beyond() == set()


@pytest.mark.parametrize(
    ("figure", "change"),
    [
        ("peak_share", {"strategy": "none"}),
        ("peak_share", {"jitter_from_attempt": 2}),
        ("peak_share", {"first_at_once": True}),
        ("peak_share", {"jitter_before_cap": True}),
        ("tries_per_client", {"multiplier": 1, "initial_interval_ms": 600}),
        ("tail_ratio", {"strategy": "none"}),
        ("at_once_share", {"min_delay_ms": 0, "initial_interval_ms": 600}),
        ("sustained_rate", {"max_interval_ms": 5_000}),
        ("sustained_rate", {"stages": [{"name": "ws", "backoff": False}]}),
        ("sustained_rate", {"layers": [4]}),
        ("flap_ratio", {"reset_on": "open", "reset_after_ms": None}),
        ("flap_ratio", {"reset_after_ms": 500}),
        ("early_share", {"honour_retry_after": False}),
        ("early_share", {"hint_cap_ms": 2_000}),
        ("sockets_per_client", {"triggers": ["close", "send"], "shared_backoff": False}),
        ("hopeless_tries", {"fatal_close_codes": []}),
        ("hopeless_tries", {"fatal_statuses": [403]}),
        ("lost_on_restart", {"retry_close_codes": [1006]}),
        ("broken_delays", {"language": "go", "cap_before_power": False}),
        ("broken_delays", {"language": "java", "cap_before_power": False}),
        ("broken_delays", {"language": "python", "cap_before_power": False}),
        ("aligned_share", {"schedule": "0 * * * *"}),
    ],
)
def test_figure_goes_beyond_its_bound(figure: str, change: dict[str, Any]) -> None:
    assert figure in beyond(**change)


def test_every_figure_with_a_bound_can_be_exceeded_by_this_test() -> None:
    (marks,) = (mark for mark in test_figure_goes_beyond_its_bound.pytestmark if mark.name == "parametrize")
    assert {figure for figure, _ in marks.args[1]} == set(BOUNDS)


def test_the_same_seed_gives_the_same_figures_and_another_one_others() -> None:
    sound = client(**SOUND)
    assert play(sound, 1) == play(sound, 1)
    assert play(sound, 1) != play(sound, 2)


def test_nobody_is_back_sooner_than_the_server_admits() -> None:
    crowd = come_back(client(**SOUND), random.Random(SEED), hints=False)
    assert len(crowd.back) == CLIENTS
    assert crowd.sockets == CLIENTS
    assert crowd.last_back_s >= IDEAL_S == (CLIENTS - RATE) / RATE


def test_a_fleet_that_obeys_is_back_when_it_was_told_in_two_tries() -> None:
    crowd = come_back(client(**SOUND), random.Random(SEED), hints=True)
    assert crowd.early == 0
    assert crowd.last_back_s <= IDEAL_S + 3
    assert crowd.tries / CLIENTS <= 2


def test_who_gives_up_is_counted_and_makes_no_socket() -> None:
    figures = play(client(**{**SOUND, "max_retries": 1}), SEED)
    assert 0.5 < figures.gave_up < 1
    assert play(client(**{**SOUND, "max_retries": 0}), SEED).gave_up == 1


def test_who_hammers_without_end_ends_the_play() -> None:
    figures = play(client(**{**SOUND, "max_interval_ms": 20, "min_delay_ms": 0}), SEED)
    assert figures.last_back_s == math.inf or figures.tries_per_client > BOUNDS["tries_per_client"].most


def test_case_7_3_flapping_is_a_steady_rate_for_who_resets_on_open_only() -> None:
    settings = {name: value for name, value in SOUND.items() if name != "reset_after_ms"}
    resets = play(client(**{**settings, "reset_on": "open"}), SEED)
    holds = play(client(**SOUND), SEED)
    assert resets.flap_wait_s < 1, "its first delay, again and again"
    assert holds.flap_wait_s > 10, "full jitter below a cap of 30 s"
    # ten minutes of sockets that open and are dropped within 2.5 s on average
    assert 600 / (holds.flap_wait_s + 2.5) <= 600 / 10


def test_case_7_9_independent_triggers_end_up_with_several_sockets() -> None:
    watchdog = {"name": "watchdog", "every_ms": 1000}
    figures = play(client(**{**SOUND, "triggers": ["close", watchdog, "send"], "shared_backoff": False}), SEED)
    assert figures.sockets_per_client > 1.5
    assert figures.sustained_rate > 1


def imported(package: Any) -> set[str]:
    names: set[str] = set()
    for path in Path(package.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module)
    assert names
    return names


def test_rules_and_fleet_know_nothing_of_each_other() -> None:
    assert not any("vet.rules" in name for name in imported(herdgate_loadtest.vet.fleet))
    assert not any("vet.fleet" in name for name in imported(herdgate_loadtest.vet.rules))
    assert "said" not in "".join(
        path.read_text() for path in Path(herdgate_loadtest.vet.fleet.__path__[0]).glob("*.py")
    ).replace("is said", "")
