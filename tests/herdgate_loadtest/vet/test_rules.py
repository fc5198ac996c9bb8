"""Each rule alone: it fires, it does not, and an absent setting is a warning at most."""

from typing import Any

import pytest

from herdgate_loadtest.vet.model import Client
from herdgate_loadtest.vet.rules import RULES, findings
from tests.herdgate_loadtest.vet.vetting import SOUND, client, errors, warnings_of

FIRES: list[tuple[str, dict[str, Any]]] = [
    ("no-jitter", {"use_jitter": False, "strategy": None}),
    ("no-jitter", {"strategy": "none"}),
    ("no-jitter", {"jitter": 0, "strategy": None}),
    ("no-jitter", {"jitter": 0.05, "strategy": None}),
    ("no-jitter", {"strategy": "none", "first_window_ms": 5000}),
    ("no-jitter", {"strategy": "decorrelated", "initial_interval_ms": 25_000}),
    ("first-attempt-synchronised", {"jitter_from_attempt": 2}),
    ("first-attempt-synchronised", {"first_at_once": True}),
    ("first-attempt-synchronised", {"initial_interval_ms": 430}),
    ("first-attempt-synchronised", {"first_window_ms": 300}),
    ("multiplier-1", {"multiplier": 1}),
    ("multiplier-1", {"multiplier": 1.19}),
    ("multiplier-1", {"multiplier": 1, "initial_interval_ms": 9_999}),
    ("multiplier-1", {"multiplier": 0.9, "initial_interval_ms": 10_000}),
    ("multiplier-1", {"multiplier": 1, "max_retries": 6}),
    ("multiplier-1", {"delays_ms": [20_000, 5_000, 20_000]}),
    ("cap-too-low", {"max_interval_ms": 9_999}),
    ("cap-too-low", {"max_interval_ms": 0}),
    ("cap-too-low", {"max_interval_ms": 5_000, "max_retries": 60}),
    ("cap-too-low", {"delays_ms": [1_000, 2_000]}),
    ("jitter-before-cap", {"jitter_before_cap": True}),
    ("jitter-before-cap", {"strategy": "decorrelated", "jitter_before_cap": True, "max_retries": 4}),
    ("no-lower-clamp", {"min_delay_ms": 0}),
    ("no-lower-clamp", {"min_delay_ms": 99}),
    ("no-lower-clamp", {"strategy": "none", "delays_ms": [10, 20_000], "min_delay_ms": None}),
    ("exponent-overflow", {"language": "go", "cap_before_power": False}),
    ("exponent-overflow", {"language": "js", "max_interval_ms": None}),
    ("reset-on-open", {"reset_on": "open", "reset_after_ms": None}),
    ("reset-on-open", {"reset_after_ms": 4_999}),
    ("hints-ignored", {"honour_retry_after": False}),
    ("hints-ignored", {"hint_cap_ms": 29_999}),
    ("clock-aligned", {"schedule": "0 * * * *"}),
    ("clock-aligned", {"align_ms": 60_000}),
    ("clock-aligned", {"schedule": "@hourly", "schedule_spread_ms": 9_999}),
    ("independent-triggers", {"triggers": ["close", "send"], "shared_backoff": False}),
    ("retries-what-cannot-succeed", {"fatal_close_codes": []}),
    ("retries-what-cannot-succeed", {"fatal_statuses": [400, 401]}),
    ("retries-what-cannot-succeed", {"fatal_close_codes": None, "retry_close_codes": "all"}),
    ("gives-up-on-restart", {"fatal_close_codes": [1008, 1012]}),
    ("gives-up-on-restart", {"retry_close_codes": [1001, 1006]}),
    ("gives-up-on-restart", {"fatal_statuses": [401, 403, 503]}),
    ("stage-outside-backoff", {"stages": [{"name": "probe"}, {"name": "ws", "backoff": False, "timeout_ms": 5000}]}),
    ("layers-multiply", {"layers": [3]}),
    ("layers-multiply", {"layers": [2, 2]}),
]
SILENT: list[dict[str, Any]] = [
    {"strategy": "equal"},
    {"strategy": "decorrelated"},
    {"strategy": "hints"},
    {"jitter": 0.5, "strategy": None},
    {"initial_interval_ms": 440},
    {"multiplier": 1, "initial_interval_ms": 10_000},
    {"first_window_ms": 600},
    {"multiplier": 1.2},
    {"max_interval_ms": 10_000},
    {"max_interval_ms": 5_000, "max_retries": 59},
    {"delays_ms": [1_000, 20_000]},
    {"delays_ms": [20_000, 20_000]},
    {"strategy": "decorrelated", "initial_interval_ms": 24_000},
    {"strategy": "decorrelated", "jitter_before_cap": True, "max_retries": 3},
    {"jitter_before_cap": True, "max_retries": 5},
    {"language": "go", "cap_before_power": True},
    {"language": "go", "cap_before_power": False, "max_retries": 33},
    {"language": "js", "cap_before_power": False},
    {"reset_after_ms": 5_000},
    {"reset_on": "message", "reset_after_ms": None},
    {"hint_cap_ms": 30_000},
    {"hint_cap_ms": None},
    {"schedule": "0 * * * *", "schedule_spread_ms": 10_000},
    {"triggers": ["close", "send"], "shared_backoff": True},
    {"fatal_close_codes": [1008]},
    {"retry_close_codes": [1001, 1006, 1012, 1013]},
    {"stages": [{"name": "probe"}, {"name": "ws"}]},
    {"layers": [2, 1, 1]},
    {"max_retries": 0, "strategy": "none"},
]
"""What is next to a rule, and no error."""
NULLABLE = {"max_interval_ms", "hint_cap_ms", "max_retries"}


def changed(change: dict[str, Any]) -> dict[str, Any]:
    """The sound settings with some of them changed; None leaves one out, but where null is a value."""
    settings = {**SOUND, **change}
    return {name: value for name, value in settings.items() if value is not None or name in NULLABLE}


@pytest.mark.parametrize(("rule", "change"), FIRES)
def test_rule_fires_alone_as_an_error(rule: str, change: dict[str, Any]) -> None:
    assert rule in errors(**changed(change))
    assert errors(**changed(change)) <= {rule, "no-jitter", "first-attempt-synchronised", "no-lower-clamp"}


@pytest.mark.parametrize("change", SILENT)
def test_sound_settings_are_no_error(change: dict[str, Any]) -> None:
    assert errors(**changed(change)) == set()


def test_sound_settings_are_not_even_a_warning() -> None:
    assert findings(client(**SOUND)) == ()


def test_every_error_rule_is_in_the_table_of_this_test() -> None:
    assert {rule for rule, _ in FIRES} == {rule.id for rule in RULES if rule.severity == "error"}


def test_ids_are_unique_and_every_rule_says_why_and_what_to_do() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.reason and rule.fix and rule.settings for rule in RULES)


@pytest.mark.parametrize("absent", sorted(SOUND))
def test_an_absent_key_gives_at_most_a_warning(absent: str) -> None:
    without = {name: value for name, value in SOUND.items() if name != absent}
    if absent == "reset_on":
        del without["reset_after_ms"]
    assert errors(**without) == set()


@pytest.mark.parametrize("said", [{"delays_ms": [120, 20_000]}, {"max_interval_ms": 300}, {"strategy": "equal"}])
def test_whatever_makes_the_first_attempt_narrow_makes_it_an_error(said: dict[str, Any]) -> None:
    narrow = {"initial_interval_ms": 600} if "strategy" in said else {}
    assert "first-attempt-synchronised" in errors(**said, **narrow)


def test_delays_that_do_not_grow_are_a_warning_where_the_client_gives_up_soon() -> None:
    few = changed({"multiplier": 1, "max_retries": 5})
    assert (errors(**few), warnings_of(**few)) == (set(), {"multiplier-1"})


def test_no_key_at_all_gives_warnings_only() -> None:
    assert errors() == set()
    asked = {"no-jitter", "cap-too-low", "no-lower-clamp", "reset-on-open", "hints-ignored"}
    assert asked | {"retries-what-cannot-succeed"} <= warnings_of()


def test_a_fault_of_what_is_assumed_is_a_warning() -> None:
    unsaid = Client(strategy="none", least_s=0.0, initial_s=0.01, said=frozenset())
    assert {finding.severity for finding in findings(unsaid)} == {"warning"}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"hint_jitter_ms": 0}, "hints-unspread"),
        ({"browser": True}, "hints-in-a-browser"),
        ({"fatal_statuses": [401, 403, 429]}, "gives-up-on-429"),
        ({"language": "go"}, "exponent-unguarded"),
        ({"cap_before_power": False}, "exponent-unguarded"),
        ({"triggers": ["close", "send"]}, "independent-triggers"),
    ],
)
def test_what_may_be_right_is_a_warning(change: dict[str, Any], rule: str) -> None:
    assert errors(**changed(change)) == set()
    assert rule in warnings_of(**changed(change))


@pytest.mark.parametrize(
    ("language", "settings", "attempt"),
    [
        # 2 ** 63 ns = 9.2e9 s; 2 ** 31 ms = 2.1e6 s, which is also setTimeout's; 2 ** 1024
        ("go", {}, 35),
        ("java", {}, 23),
        ("js", {"max_interval_ms": None}, 23),
        ("python", {}, 1025),
        # 2 ** 1024 ms, of which a share is taken off before the cap
        ("js", {"strategy": "proportional", "jitter_before_cap": True, "max_interval_ms": 5000}, 1016),
    ],
)
def test_case_7_1_overflow_names_its_attempt(language: str, settings: dict[str, Any], attempt: int) -> None:
    found = findings(client(**{**SOUND, "cap_before_power": False, "language": language, **settings}))
    (overflow,) = (each for each in found if each.rule == "exponent-overflow")
    assert overflow.detail.startswith(f"{language}: ")
    assert overflow.detail.endswith(f"at attempt {attempt:,}")


def test_case_7_9_independent_triggers_tell_their_summed_rate() -> None:
    watchdog = {"name": "watchdog", "every_ms": 1000}
    found = findings(client(**{**SOUND, "triggers": ["close", watchdog, "send"], "shared_backoff": False}))
    # the watchdog once a second, the others once in 30 s
    assert "close, watchdog, send: 1.1 tries a second" in found[0].detail


def test_case_1_8_first_retry_without_jitter_is_told_as_such() -> None:
    found = findings(client(**{**SOUND, "jitter_from_attempt": 2}))
    assert [each.rule for each in found] == ["first-attempt-synchronised"]
    assert found[0].detail.startswith("first attempt synchronised: 1 s for all")


def test_case_1_14_clock_aligned_schedule_suggests_an_offset_of_its_own() -> None:
    for settings in ({"schedule": "0 * * * *"}, {"align_ms": 3_600_000}):
        (found,) = findings(client(**{**SOUND, **settings}))
        assert found.detail.startswith("clock-aligned")
        assert "each client an offset of its own" in found.fix


def test_case_1_15_backoff_that_covers_the_first_stage_only_is_found() -> None:
    stages = [{"name": "probe", "backoff": True}, {"name": "ws", "backoff": False}]
    (found,) = findings(client(**{**SOUND, "stages": stages}))
    assert (found.rule, found.detail) == ("stage-outside-backoff", "outside the backoff: ws")


def test_case_7_5_retry_after_ignored_is_an_error_and_a_browser_needs_a_close_frame() -> None:
    found = findings(client(**{**SOUND, "honour_retry_after": False, "browser": True}))
    assert [(each.rule, each.severity) for each in found] == [
        ("hints-ignored", "error"),
        ("hints-in-a-browser", "warning"),
    ]


def test_case_7_11_retry_on_all_codes_names_1008_and_never_on_1012_is_an_error() -> None:
    everything = {**SOUND, "retry_close_codes": "all", "fatal_close_codes": []}
    (found,) = findings(client(**everything))
    assert (found.rule, found.severity) == ("retries-what-cannot-succeed", "error")
    assert "1008" in found.detail
    (never,) = findings(client(**{**SOUND, "fatal_close_codes": [1008, 1012, 1013]}))
    assert (never.rule, never.severity) == ("gives-up-on-restart", "error")


def test_case_7_14_layers_are_multiplied() -> None:
    (found,) = findings(client(**{**SOUND, "layers": [3, 3, 3, 3, 3]}))
    assert found.detail == "one attempt becomes 3 x 3 x 3 x 3 x 3 = 243 tries"
