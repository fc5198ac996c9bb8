"""Crowds in virtual time: they fare as the design says, and fleets and their failures are what clients meet."""

import math
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import pytest

from herdgate_loadtest.simulate.herd import simulate
from herdgate_loadtest.simulate.scenario import Failure, GatewayDown, RateChange, Scenario, Worker, WorkerKilled
from tests.herdgate_loadtest.simulate.scenarios import outcome_of, played

DIP = (RateChange(5, 100), RateChange(15, 500))


class Line(NamedTuple):
    """A crowd at 500 a second, and its figures; tries None: nothing is claimed."""

    scenario: Scenario
    all_back_s: float
    tries: float | None
    longest_wait_s: float | None


LINES = {
    "10,000 obey": Line(played(10_000, 500), 19.3, 1.94, 19.0),
    "30,000 obey": Line(played(30_000, 500), 59.3, 2.69, 59.0),
    "30,000 obey, hints of any length": Line(played(30_000, 500, hint_cap_s=600), 59.3, 1.98, 59.0),
    "10,000 obey without tickets": Line(played(10_000, 500, "hint"), 19.4, 1.94, 19.3),
    "10,000 every second": Line(played(10_000, 500, "fixed"), 19.3, None, None),
    "10,000 with full jitter": Line(played(10_000, 500, "jitter"), 41.8, None, None),
    "10,000 obey while the rate dips": Line(played(10_000, 500, failures=DIP), 27.3, 2.86, 27.0),
}


@pytest.mark.parametrize("name", LINES)
def test_crowd_fares_as_the_design_says(name: str) -> None:
    scenario, all_back_s, tries, longest_wait_s = LINES[name]
    record = simulate(scenario).record
    (kind,) = record.behaviours.values()
    assert record.t100_s == pytest.approx(all_back_s, rel=0.05)
    assert kind.back == scenario.clients
    if tries is not None:
        assert record.attempts_per_client == pytest.approx(tries, rel=0.05)
        assert kind.wait_max_s == pytest.approx(longest_wait_s, rel=0.05)


def test_the_record_is_complete_and_adds_up() -> None:
    record = outcome_of(2_000, 100).record
    assert (record.clients, record.rate, record.burst, record.ideal_s) == (2_000, 100, 100, 19.0)
    assert record.denied == round(record.attempts_per_client * 2_000) - 2_000
    assert (record.failed, record.valid, record.leaked_permits, record.denial_p99_ms) == (0, True, None, 0)
    assert record.recovery_ratio == record.t100_s / 19.0


FAILURES: tuple[Failure, ...] = (GatewayDown(2, 1, 3), WorkerKilled(4, 2, 1), RateChange(6, 50), RateChange(8, 200))
MIXED = replace(
    played(2_000, 100, failures=FAILURES, gateways=3, workers=(Worker(1_500, 0.2), Worker(1_500))),
    behaviours={"obey": 0.5, "hint": 0.2, "jitter": 0.1, "fixed:2": 0.1, "immediate": 0.1},
)


def test_same_seed_is_the_same_record_byte_by_byte() -> None:
    first, second = simulate(MIXED), simulate(MIXED)
    assert first.record.to_json() == second.record.to_json()
    assert list(first.admissions) == list(second.admissions)


def test_another_seed_is_another_record() -> None:
    assert simulate(replace(MIXED, seed=2)).record.to_json() != simulate(MIXED).record.to_json()


def test_every_client_of_a_mixed_crowd_is_back_with_its_kind() -> None:
    record = simulate(MIXED).record
    kinds = {name: (kind.clients, kind.back) for name, kind in record.behaviours.items()}
    assert kinds == {
        "obey": (1_000, 1_000),
        "hint": (400, 400),
        "jitter": (200, 200),
        "fixed:2": (200, 200),
        "immediate": (200, 200),
    }


def test_shares_that_do_not_divide_the_clients_still_tell_all_of_them() -> None:
    scenario = replace(played(10), behaviours={"obey": 1 / 3, "hint": 1 / 3, "jitter": 1 / 3})
    assert sorted(scenario.counts().values()) == [3, 3, 4]


def test_gateways_share_one_calendar() -> None:
    one, five = outcome_of(2_000, 100).record, outcome_of(2_000, 100, gateways=5).record
    assert five.t100_s == one.t100_s
    assert five.attempts_per_client == one.attempts_per_client


@pytest.mark.parametrize("behaviour", ["obey", "hint", "jitter", "fixed", "immediate"])
def test_no_second_has_more_admissions_than_burst_and_rate(behaviour: str) -> None:
    outcome = outcome_of(1_000, 100, behaviour, burst=1)
    assert len(outcome.admissions) == 1_000
    seconds = Counter(int(moment) for moment in outcome.admissions)
    late = 1 + 100 * 1.6  # firm slots of the hold and one bucket, taken late
    assert max(seconds.values()) <= 1 + 100 + late


def test_a_gateway_that_holds_nobody_costs_more_tries() -> None:
    held, turned_away = outcome_of(2_000, 100, max_wait_s=3.0), outcome_of(2_000, 100, max_wait_s=0.0)
    none = outcome_of(2_000, 100, max_wait_s=3.0, max_held=0)
    assert held.record.attempts_per_client < turned_away.record.attempts_per_client
    assert none.record.to_json() == turned_away.record.to_json()


def test_workers_that_are_full_take_exactly_what_they_have_room_for() -> None:
    outcome = outcome_of(1_000, 500, workers=(Worker(300), Worker(100)), until_s=30)
    record = outcome.record
    assert record.behaviours["obey"].back == 400
    assert record.recovery_ratio == record.t100_s == math.inf
    assert record.denied > 600 * 10, "who is told full comes again in a second or two"


def test_set_ups_are_part_of_the_wait() -> None:
    quick, slow = outcome_of(1_000, 100), outcome_of(1_000, 100, workers=(Worker(None, 0.5),))
    assert slow.record.t100_s == pytest.approx(quick.record.t100_s + 0.5)
    assert slow.record.attempts_per_client == quick.record.attempts_per_client


def test_a_gateway_that_answers_slowly_makes_who_hammers_wait_in_line() -> None:
    outcome = outcome_of(1_000, 100, "immediate", answers_per_s=1_000)
    tries = outcome.record.attempts_per_client * 1_000
    assert 900 * outcome.record.t100_s * 0.8 < tries <= 1_000 * (outcome.record.t100_s + 1)
    assert (outcome.record.denial_p99_ms or 0) > 500, "a thousand in line"
    assert outcome.record.t95_s == pytest.approx(outcome_of(1_000, 100, "immediate").record.t95_s, rel=0.05)


def test_a_lower_rate_delays_who_is_not_in_yet() -> None:
    slowed = outcome_of(2_000, 100, failures=(RateChange(10, 50),)).record
    assert slowed.t100_s == pytest.approx(10 + (2_000 - 100 - 1_000) / 50, rel=0.05)


def test_a_rate_of_nought_stops_and_goes_on_where_it_was() -> None:
    paused = outcome_of(1_000, 100, failures=(RateChange(3, 0), RateChange(13, 100)))
    later_s = paused.record.t100_s - outcome_of(1_000, 100).record.t100_s
    assert 10 <= later_s <= 20, "who asks meanwhile is told 10 s at most"
    assert len(paused.admissions) == 1_000
    assert not [moment for moment in paused.admissions if 3 < moment < 13]


def test_a_killed_worker_has_its_clients_called_back_and_told_when() -> None:
    outcome = outcome_of(1_000, 100, workers=(Worker(), Worker()), failures=(WorkerKilled(30, 1, 5),))
    assert outcome.losses == [(30, 500)]
    assert outcome.record.failed == 0
    assert outcome.record.behaviours["obey"].back == 1_000
    after = [moment for moment in outcome.admissions if moment > 30]
    assert len(after) == 500
    assert min(after) >= 31, "a lost worker's clients come back after a second at least"


def test_set_ups_at_a_killed_worker_are_refused_and_told_when() -> None:
    settings = {"workers": (Worker(None, 2.0), Worker(None, 2.0)), "until_s": 60}
    outcome = outcome_of(100, 100, failures=(WorkerKilled(1, 1),), **settings)
    assert outcome.losses == []
    assert (outcome.record.denied, outcome.record.failed) == (50, 0)
    assert outcome.record.behaviours["obey"].back == 100


def test_a_killed_worker_takes_its_room_along_until_it_is_back() -> None:
    workers = (Worker(600), Worker(600))
    gone = outcome_of(1_000, 500, workers=workers, failures=(WorkerKilled(20, 2),), until_s=60).record
    back = outcome_of(1_000, 500, workers=workers, failures=(WorkerKilled(20, 2, 10),), until_s=60).record
    assert gone.behaviours["obey"].back == 600
    assert back.behaviours["obey"].back == 1_000
    assert back.t100_s >= 30


def test_a_gateway_that_dies_takes_its_sockets_and_handshakes_and_others_go_on() -> None:
    outcome = outcome_of(1_200, 100, gateways=3, failures=(GatewayDown(5, 2),))
    ((at, lost),) = outcome.losses
    assert at == 5
    assert lost == pytest.approx(200, abs=40), "a third of those who are in"
    assert outcome.record.failed > 100, "every third try meets nobody"
    assert outcome.record.behaviours["obey"].back == 1_200


def test_a_gateway_that_dies_in_mid_crowd_fails_whom_it_holds() -> None:
    steady = outcome_of(1_000, 100, max_wait_s=3.0).record
    outcome = outcome_of(1_000, 100, max_wait_s=3.0, failures=(GatewayDown(5, 1, 2),))
    assert steady.failed == 0
    assert outcome.record.failed > 200
    assert outcome.record.behaviours["obey"].back == 1_000
    assert not [moment for moment in outcome.admissions if 5 < moment < 7], "there is no other gateway"


def test_with_no_gateway_left_nobody_is_back() -> None:
    record = outcome_of(100, 10, failures=(GatewayDown(0, 1),), until_s=60).record
    assert (record.behaviours["obey"].back, record.denied) == (0, 0)
    assert record.failed == round(record.attempts_per_client * 100) > 100


def test_losses_that_follow_each_other_are_each_recovered_from() -> None:
    kills = tuple(WorkerKilled(at, 1, 1) for at in (30, 60, 90))
    outcome = outcome_of(500, 100, failures=kills)
    assert [lost for _, lost in outcome.losses] == [500, 500, 500]
    assert len(outcome.admissions) == 2_000
    assert outcome.record.t100_s > 90


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize(("hint_cap_s", "tries"), [(30, 3.05), (600, 2.05)])
def test_a_million_clients_take_less_than_a_minute_and_two_gib(hint_cap_s: int, tries: float) -> None:
    code = f"""
import resource, time
from tests.herdgate_loadtest.simulate.scenarios import outcome_of
record = outcome_of(1_000_000, 5_000, hint_cap_s={hint_cap_s}).record
usage = resource.getrusage(resource.RUSAGE_SELF)
print(record.recovery_ratio, record.attempts_per_client, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ratio, each, cpu_s, gib = map(float, done.stdout.split())
    assert ratio <= 1.02
    assert each <= tries
    assert cpu_s < 60
    assert gib < 2
