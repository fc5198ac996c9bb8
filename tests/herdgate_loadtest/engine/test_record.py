"""The result record, from made-up runs."""

import json
import math

import pytest

from herdgate_loadtest.engine.record import (
    Outcome,
    Record,
    ServerCounts,
    compute_record,
    disagreements,
    percentile,
)

FIELDS = [
    *("clients", "rate", "burst", "ideal_s", "t95_s", "t100_s", "recovery_ratio", "attempts_per_client"),
    *("peak_admitted_per_s", "denied", "failed", "denial_p99_ms", "leaked_permits", "valid", "reasons", "behaviours"),
]


def record(
    outcomes: list[Outcome],
    *,
    rate: float = 10.0,
    burst: float = 10.0,
    denials_s: tuple[float, ...] = (),
    admissions_s: list[float] | None = None,
    leaked_permits: int | None = None,
    reasons: tuple[str, ...] = (),
) -> Record:
    moments = [outcome.back_s for outcome in outcomes if outcome.back_s is not None]
    return compute_record(
        outcomes,
        rate=rate,
        burst=burst,
        denied=len(denials_s),
        failed=0,
        denials_s=denials_s,
        admissions_s=moments if admissions_s is None else admissions_s,
        leaked_permits=leaked_permits,
        reasons=reasons,
    )


def crowd(count: int = 100, *, behaviour: str = "obey", attempts: int = 2) -> list[Outcome]:
    """Back one by one, ten a second; the first ten at once. Each began 0.05 s after the cut."""
    backs = [max(0.1, (i - 9) / 10) for i in range(count)]
    return [Outcome(behaviour, attempts, back_s=back_s, wait_s=back_s - 0.05) for back_s in backs]


def test_perfect_recovery_has_ratio_one() -> None:
    found = record(crowd())
    assert found.ideal_s == pytest.approx(9.0)
    assert found.t100_s == pytest.approx(9.0)
    assert found.t95_s == pytest.approx(8.5)
    assert found.recovery_ratio == pytest.approx(1.0)
    assert found.attempts_per_client == 2.0
    assert found.valid


def test_ratio_is_that_of_the_obedient_alone() -> None:
    found = record([*crowd(90), *(Outcome("fixed", 9, back_s=45.0, wait_s=45.0) for _ in range(10))])
    assert found.t100_s == 45.0
    assert found.recovery_ratio == pytest.approx(8.0 / 9.0)


def test_client_that_never_came_back_makes_it_infinite() -> None:
    found = record([*crowd(99), Outcome("obey", 7)])
    assert found.recovery_ratio == math.inf
    assert found.t100_s == math.inf
    assert found.t95_s == pytest.approx(8.5)
    assert found.behaviours["obey"].back == 99
    assert found.behaviours["obey"].wait_max_s == math.inf
    assert found.behaviours["obey"].wait_p50_s == pytest.approx(3.95)


def test_disobedient_client_that_never_came_back_makes_it_infinite_too() -> None:
    assert record([*crowd(99), Outcome("jitter", 7)]).recovery_ratio == math.inf


@pytest.mark.parametrize(
    ("outcomes", "burst"), [(crowd(behaviour="hint"), 10.0), (crowd(), 100.0), (crowd(), 500.0), ([], 10.0)]
)
def test_ratio_is_null_without_obedient_clients_or_without_a_queue(outcomes: list[Outcome], burst: float) -> None:
    found = record(outcomes, burst=burst)
    assert found.recovery_ratio is None
    assert found.ideal_s >= 0.0


@pytest.mark.parametrize(
    ("admissions_s", "peak"),
    [
        ([0.0] * 25 + [1.5] * 12 + [2.0] * 11, 15),  # 25 in the first second, 10 of them the burst
        ([0.2] * 10 + [1.0] * 12 + [1.999] * 3 + [2.0] * 14, 15),
        ([0.2] * 4, 0),  # never below 0
        ([], 0),
    ],
)
def test_peak_counts_aligned_seconds_and_takes_the_burst_from_the_first(admissions_s: list[float], peak: float) -> None:
    assert record(crowd(), admissions_s=admissions_s).peak_admitted_per_s == peak


def test_behaviours_are_told_apart() -> None:
    found = record([*crowd(20), *crowd(10, behaviour="fixed:15", attempts=5)]).behaviours
    assert list(found) == ["fixed:15", "obey"]
    assert found["fixed:15"].clients == found["fixed:15"].back == 10
    assert found["fixed:15"].attempts_per_client == 5.0
    assert found["obey"].wait_max_s == pytest.approx(0.95)


def test_denial_latency_is_null_if_nobody_was_denied() -> None:
    assert record(crowd()).denial_p99_ms is None
    assert record(crowd(), denials_s=(0.001,) * 99 + (0.5,)).denial_p99_ms == pytest.approx(1.0)
    assert record(crowd(), denials_s=(0.001,) * 98 + (0.5,) * 2).denial_p99_ms == pytest.approx(500.0)


def test_reasons_make_a_run_invalid() -> None:
    found = record(crowd(), reasons=("the generator ran out",))
    assert not found.valid
    assert found.as_dict()["reasons"] == ["the generator ran out"]


def test_json_is_strict_and_has_the_fields_in_order() -> None:
    found = record([*crowd(99), Outcome("obey", 7)], denials_s=(0.123456789,), leaked_permits=0)

    def refuse(constant: str) -> float:
        raise AssertionError(f"{constant} is not JSON")

    read = json.loads(found.to_json(), parse_constant=refuse)
    assert list(read) == FIELDS
    assert "\n" not in found.to_json()
    assert read["recovery_ratio"] == "Infinity"
    assert float(read["recovery_ratio"]) == math.inf
    assert read["behaviours"]["obey"]["wait_max_s"] == "Infinity"
    assert read["denial_p99_ms"] == 123.4568
    assert read["leaked_permits"] == 0
    assert read["valid"] is True


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 10.0), (1, 10.0), (50, 20.0), (75, 30.0), (95, 40.0), (99, 40.0), (100, 40.0)]
)
def test_percentile_is_always_one_of_the_values(percent: float, expected: float) -> None:
    assert percentile([10.0, 20.0, 30.0, 40.0], percent) == expected


def test_percentile_of_nothing_is_zero() -> None:
    assert percentile([], 50) == 0.0


@pytest.mark.parametrize(
    ("server", "complaints"),
    [
        (ServerCounts(), 0),
        (ServerCounts(admitted=100, denied=95), 0),
        (ServerCounts(admitted=105, denied=100), 0),  # as many as the tries without an orderly answer
        (ServerCounts(admitted=106), 1),
        (ServerCounts(admitted=94, denied=101), 2),
    ],
)
def test_server_must_agree_up_to_the_tries_that_had_no_answer(server: ServerCounts, complaints: int) -> None:
    found = disagreements(server, tries=200, admitted=100, denied=95)
    assert len(found) == complaints
    assert all("the server counted" in complaint and "(5 tries" in complaint for complaint in found)
