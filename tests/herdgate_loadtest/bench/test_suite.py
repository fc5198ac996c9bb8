"""What a run comes to: figures, reasons, load."""

import json
from typing import Any

from herdgate_loadtest.bench.figures import FIGURES
from herdgate_loadtest.bench.finding import Finding
from herdgate_loadtest.bench.suite import MEMBERS, Report

GOOD = Finding({"overshoot": 1.0, "recovery_ratio": 1.01}, details={"t100_s": 19.2})


def report(*findings: Finding) -> Report:
    whole = Report()
    for member, finding in zip(MEMBERS, findings, strict=False):
        whole.add(member, finding, (0.5, 1.5))
    return whole


def printed(whole: Report) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(json.dumps(whole.as_dict(), allow_nan=False))
    return told


def test_report_holds_if_every_figure_is_in_its_bound_and_nothing_spoiled_it() -> None:
    assert report(GOOD, Finding({"redis_calls_per_decision": 0.05})).holds


def test_figure_out_of_its_bound_is_missed() -> None:
    whole = report(GOOD, Finding({"redis_calls_per_decision": 0.5}))

    assert not whole.holds
    assert printed(whole)["missed"] == ["redis_calls_per_decision is 0.5, not at most 0.1"]
    assert printed(whole)["valid"]


def test_reason_makes_the_run_not_valid_and_names_its_member() -> None:
    whole = report(GOOD, Finding({"redis_calls_per_decision": 0.05}, ["too slow"]))

    assert not whole.holds
    assert (printed(whole)["valid"], printed(whole)["reasons"]) == (False, ["pressure: too slow"])


def test_infinite_figure_is_a_text_in_json() -> None:
    whole = report(Finding({"recovery_ratio": float("inf")}))

    assert printed(whole)["results"] == {"recovery_ratio": "Infinity"}
    assert printed(whole)["missed"] == ["recovery_ratio is inf, not at most 1.15"]


def test_load_and_details_stand_beside_the_figures() -> None:
    told = printed(report(GOOD))

    assert told["results"] == GOOD.figures
    assert told["load"] == {"recovery": [0.5, 1.5]}
    assert told["details"] == {"recovery": {"t100_s": 19.2}}


def test_figures_are_those_with_a_bound() -> None:
    assert list(GOOD.figures) == list(FIGURES)[:2]
