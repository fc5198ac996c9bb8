"""Settings by whatever name, presets below them, one fault a line."""

import math
import random
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_loadtest.errors import UnreadableError
from herdgate_loadtest.vet.clients import section_of
from herdgate_loadtest.vet.model import Policy
from herdgate_loadtest.vet.names import SETTINGS, meaning_of
from herdgate_loadtest.vet.presets import PRESETS
from herdgate_loadtest.vet.rules import findings
from herdgate_loadtest.vet.settings import Settings
from tests.herdgate_loadtest.vet.configurations import configuration
from tests.herdgate_loadtest.vet.vetting import client, errors, known, warnings_of


def faults(settings: dict[str, Any], preset: str | None = None) -> list[str]:
    with pytest.raises(UnreadableError) as error:
        known(settings, preset)
    return list(error.value.faults)


@pytest.mark.parametrize(
    ("written", "field", "value"),
    [
        ({"initial_interval_ms": 200}, "initial_s", 0.2),
        ({"initialIntervalMs": 200}, "initial_s", 0.2),
        ({"initial-interval-s": 2}, "initial_s", 2),
        ({"initial_interval_seconds": 2}, "initial_s", 2),
        ({"initial_delay_ms": 200}, "initial_s", 0.2),
        ({"max_delay_s": 40}, "cap_s", 40),
        ({"max_interval_ms": None}, "cap_s", math.inf),
        ({"max_interval_ms": math.inf}, "cap_s", math.inf),
        ({"max_retries": None}, "max_retries", None),
        ({"factor": 3}, "multiplier", 3),
        ({"reconnectionDelay": 500}, "initial_s", 0.5),
        ({"reconnectionDelayMax": 9000}, "cap_s", 9),
        ({"randomizationFactor": 0.25}, "jitter", 0.25),
        ({"reconnectionAttempts": 7}, "max_retries", 7),
        ({"reconnectAfterMs": [10, 50]}, "delays_s", (0.01, 0.05)),
        ({"minReconnectionDelay": 1500}, "initial_s", 1.5),
        ({"reconnectionDelayGrowFactor": 1.3}, "multiplier", 1.3),
        ({"minUptime": 6000}, "reset_after_s", 6),
        ({"reconnectInterval": 1000}, "initial_s", 1),
        ({"reconnectDecay": 1.5}, "multiplier", 1.5),
        ({"minReconnectDelay": 700}, "initial_s", 0.7),
        ({"maxReconnectDelay": 20_000}, "cap_s", 20),
        ({"maxBackoffTime": 2500}, "cap_s", 2.5),
        ({"WEBSOCKETS_BACKOFF_MIN_DELAY": 3.1}, "initial_s", 3.1),
        ({"WEBSOCKETS_BACKOFF_MAX_DELAY": 90}, "cap_s", 90),
        ({"honor_retry_after": False}, "honours_hints", False),
        ({"strategy": "hints"}, "honours_hints", True),
        ({"use_jitter": False}, "strategy", "none"),
        ({"use_jitter": True}, "strategy", "full"),
        ({"jitter": 0.5}, "strategy", "proportional"),
        ({"retry_close_codes": "all"}, "close_codes", Policy(frozenset())),
        ({"retry_statuses": [503]}, "statuses", Policy(frozenset(), frozenset({503}))),
        ({"url": "wss://x", "multiplier": 2}, "multiplier", 2),
    ],
)
def test_names_in_the_wild_are_understood(written: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(client(**written), field) == value


def test_every_setting_is_known_by_its_own_name() -> None:
    assert set(Settings.model_fields) == SETTINGS - {"preset"}
    assert {(meaning.setting if (meaning := meaning_of(name)) else None) for name in SETTINGS} == SETTINGS


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"multiplier": "2"}, ["multiplier: got '2'; write a number"]),
        ({"multiplier": True}, ["multiplier: got true; write a number"]),
        ({"multiplier": -1}, ["multiplier: got -1; write 0 or more"]),
        ({"use_jitter": 1}, ["use_jitter: got 1; write true or false"]),
        ({"max_retries": 1.5}, ["max_retries: got 1.5; write a whole number"]),
        ({"maxRetries": -1}, ["maxRetries: got -1; write 0 or more"]),
        ({"initial_interval_ms": None}, ["initial_interval_ms: got null; write a number"]),
        ({"initial_interval_ms": math.nan}, ["initial_interval_ms: got nan; write a finite number"]),
        ({"initial_interval_s": "1"}, ["initial_interval_s: got '1'; write a number"]),
        ({"client_id": ""}, ["client_id: got ''; write some text"]),
        ({"client_id": "a\nb"}, ["client_id: got 'a\\nb'; write printable text, in one line"]),
        ({"schedule": "soon"}, ["schedule: got 'soon'; write a cron line of 5 fields, such as \"0 * * * *\""]),
        ({"layers": [2, 0]}, ["layers[1]: got 0; write 1 or more"]),
        ({"triggers": [{"every_ms": 5}]}, ["triggers[0].name: got nothing; write it"]),
        ({"stages": [{"name": "a", "b": 1}]}, ["stages[0].b: got 1; nobody knows this key here; leave it out"]),
        ({"multiplyer": 2}, ["multiplyer: nobody knows this setting; is it multiplier?"]),
        ({"reconnectionDelai": 2}, ["reconnectionDelai: nobody knows this setting; is it reconnectionDelay?"]),
        ({"initial_interval": 2}, ["initial_interval: says no unit; end its name in _ms or _s"]),
        ({"initialDelay": 2}, ["initialDelay: says no unit; end its name in _ms or _s"]),
        ({"jitter": False}, ["jitter: got false; write a share, 0 to 1; whether there is any jitter is use_jitter"]),
        ({"client_id": "\ud800"}, ["client_id: got '\\ud800'; write printable text, in one line"]),
        ({"client_id": b"x"}, ["client_id: got something else; write a text"]),
        ({"schedule": date(2026, 11, 30)}, ["schedule: got a date or a time; write a text"]),
        ({"initial_interval_ms": 2e10}, ["initial_interval_ms: got 20000000000.0; write at most 10,000,000,000"]),
        ({"k" * 10_000: 1}, [f"{'k' * 77}...: nobody knows this setting; leave it out"]),
        ({"colour": 2}, ["colour: nobody knows this setting; leave it out"]),
        ({}, ["holds no reconnect setting"]),
        ({"url": "wss://x"}, ["holds no reconnect setting"]),
        (
            {"factor": 2, "multiplier": 3},
            ["factor and multiplier are the same setting; leave one of them out"],
        ),
        ({"preset": "socketio"}, [f"preset: got socketio; write one of {', '.join(PRESETS)}"]),
        ({"preset": ["x"]}, [f"preset: got a list; write one of {', '.join(PRESETS)}"]),
    ],
)
def test_each_fault_is_one_line(settings: dict[str, Any], expected: list[str]) -> None:
    assert faults(settings) == expected


def test_every_fault_is_told_not_only_the_first() -> None:
    assert len(faults({"multiplier": "2", "use_jitter": 0, "colour": 1, "layers": [0, "x"]})) == 5


@pytest.mark.parametrize(
    "settings",
    [
        {"use_jitter": True, "strategy": "none"},
        {"use_jitter": False, "strategy": "full"},
        {"use_jitter": False, "jitter": 0.5},
        {"strategy": "full", "jitter": 0.5},
        {"strategy": "hints", "honour_retry_after": False},
        {"reset_on": "open", "reset_after_ms": 5},
        {"strategy": "decorrelated", "delays_ms": [100, 1000]},
    ],
)
def test_contradictions_are_faults(settings: dict[str, Any]) -> None:
    (fault,) = faults(settings)
    assert "leave" in fault or "write one of them" in fault


def test_of_many_faults_the_first_fifty_are_told() -> None:
    found = faults({f"k{number}": 1 for number in range(200)})
    assert (len(found), found[-1]) == (51, "and 150 more")
    stage = {"name": "a"} | {f"k{number}": 1 for number in range(20_000)}
    assert faults({"stages": [stage]})[-1] == "and 19,950 more"


def test_what_has_far_too_many_keys_is_one_fault() -> None:
    told = "has 25,000 keys, which no settings have; name their section with --key"
    assert faults({f"reconnectionDelayMax{number}": 1 for number in range(25_000)}) == [told]


def test_case_7_7_zero_absent_and_text_are_three_things() -> None:
    zero = {each.name: each for each in known({"jitter": 0}).effective}["jitter"]
    assert (zero.value, zero.source) == (0, "file")
    assert errors(jitter=0) >= {"no-jitter"}
    absent = {each.name: each for each in known({"multiplier": 2}).effective}
    assert (absent["strategy"].value, absent["strategy"].source) == ("full", "default")
    assert faults({"jitter": "0"}) == ["jitter: got '0'; write a number"]


def test_effective_settings_follow_from_each_other() -> None:
    values = {each.name: each.value for each in known({"use_jitter": False}).effective}
    assert (values["strategy"], values["use_jitter"], values["min_delay_ms"]) == ("none", False, 0)
    assert (values["retry_close_codes"], values["fatal_statuses"]) == ("all", [400, 401, 403, 404, 405, 410, 426])
    values = {each.name: each.value for each in known({"retry_statuses": [503, 502]}).effective}
    assert (values["retry_statuses"], values["fatal_statuses"]) == ([502, 503], [])


def test_a_fixed_delay_says_how_short_it_is() -> None:
    assert "no-lower-clamp" not in warnings_of(use_jitter=False, initial_interval_ms=1000)
    assert "no-lower-clamp" in errors(use_jitter=False, initial_interval_ms=50)
    assert "no-lower-clamp" in warnings_of(use_jitter=True, initial_interval_ms=1000)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_each_preset_is_read_and_no_library_is_safe_as_it_comes(preset: str) -> None:
    found = known({}, preset)
    assert {each.source for each in found.effective} == {"preset", "default"}
    assert {"hints-ignored", "retries-what-cannot-succeed"} <= errors(preset=preset)
    assert not any("not said" in finding.detail for finding in findings(found.client)), "a library says it all"


@pytest.mark.parametrize(
    ("preset", "unsafe"),
    [
        ("socket.io", {"cap-too-low", "jitter-before-cap", "exponent-overflow", "reset-on-open"}),
        ("phoenix", {"no-jitter", "cap-too-low", "no-lower-clamp", "reset-on-open"}),
        ("reconnecting-websocket", {"jitter-before-cap"}),
        ("reconnecting-websocket-1", {"no-jitter", "reset-on-open"}),
        ("centrifuge", set()),
        ("y-websocket", {"no-jitter", "cap-too-low"}),
        ("websockets", {"no-jitter", "first-attempt-synchronised", "no-lower-clamp", "reset-on-open"}),
    ],
)
def test_what_is_wrong_with_a_preset(preset: str, unsafe: set[str]) -> None:
    assert errors(preset=preset) == unsafe | {"hints-ignored", "retries-what-cannot-succeed"}


def test_settings_hold_over_a_preset_matter_by_matter() -> None:
    found = client(preset="socket.io", strategy="full", reset_after_ms=30_000)
    assert (found.strategy, found.reset_on, found.cap_s) == ("full", "stable", 5)
    assert client(preset="phoenix", initial_interval_ms=100).delays_s == ()
    assert client(preset="websockets", fatal_statuses=[401]).statuses == Policy(frozenset({401}))
    assert client(preset="phoenix", retry_close_codes=[1006]).close_codes == Policy(frozenset(), frozenset({1006}))
    assert client(preset="centrifuge", retry_close_codes="all").close_codes == Policy(frozenset())


def test_options_of_a_library_that_say_nothing_of_coming_back_are_no_faults() -> None:
    assert client(preset="reconnecting-websocket", maxEnqueuedMessages=9, startClosed=True).max_retries is None


def test_a_section_is_found_by_its_path() -> None:
    table = {"net": {"ws": {"multiplier": 2}}}
    assert section_of(table, "net.ws") == {"multiplier": 2}
    assert section_of(table, "") == table
    with pytest.raises(UnreadableError, match=r"has no table at net\.tcp"):
        section_of(table, "net.tcp")
    with pytest.raises(UnreadableError, match=r"has no table at net\.ws\.multiplier"):
        section_of(table, "net.ws.multiplier")


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)


@given(st.dictionaries(st.one_of(st.sampled_from(sorted(SETTINGS)), st.text(max_size=8)), anything, max_size=8))
def test_whatever_is_written_is_a_client_or_faults(settings: dict[str, Any]) -> None:
    told: tuple[str, ...] = ()
    try:
        told = tuple(each.name for each in known(settings).effective)
    except UnreadableError as error:
        told = error.faults
    assert told
    assert not any("\n" in line for line in told)


def test_1000_random_configurations_are_read() -> None:
    rng = random.Random(11)
    assert all(known(configuration(rng)).client.client_id for _ in range(1000))


def test_aliases_that_hold_themselves_are_only_faults() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert len(faults({"delays_ms": loop, "delays_s": loop, "layers": loop, "preset": loop})) == 4
