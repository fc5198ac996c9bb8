"""Medians, ratios, bounds."""

import json
import math
from typing import Any

import pytest

from herdgate_loadtest.bench.figures import at_least, at_most
from herdgate_loadtest.bench.sides.outcome import Outcome
from herdgate_loadtest.bench.sides.report import table
from herdgate_loadtest.bench.sides.slots import LEAST_DONE, Slot


def outcome(ours: list[float], theirs: list[float], least: float = 2.0) -> Outcome:
    whole = Outcome({"herdgate/uvicorn": at_least(least, 3), "herdgate/nginx": at_least(1, 1)})
    for value in ours:
        whole.add("herdgate", value)
    for value in theirs:
        whole.add("uvicorn", value)
    whole.compare("herdgate", "uvicorn")
    whole.compare("herdgate", "nginx")
    return whole


def printed(whole: Outcome) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(json.dumps(whole.as_dict(), allow_nan=False))
    return told


def test_ratio_is_that_of_the_medians() -> None:
    told = printed(outcome([10, 90, 50], [20, 5, 10]))

    assert told["results"]["herdgate"] == {"median": 50, "min": 10, "max": 90}
    assert told["ratios"] == {"herdgate/uvicorn": 5}  # nginx was not measured
    assert told["bounds"] == {"herdgate/uvicorn": {"value": 5, "has_to_be": "at least 2", "aim": "3", "reached": True}}
    assert (told["valid"], told["missed"]) == (True, [])


def test_ratio_out_of_its_bound_is_missed() -> None:
    whole = outcome([10], [10])

    assert not whole.holds
    assert printed(whole)["missed"] == ["herdgate/uvicorn is 1, not at least 2"]
    assert not printed(whole)["bounds"]["herdgate/uvicorn"]["reached"]
    assert printed(whole)["valid"]


def test_reason_makes_the_run_not_valid_and_is_told_once() -> None:
    whole = outcome([30], [10])
    whole.spoiled(["too slow", "too slow"])
    whole.spoiled(["too slow"])

    assert not whole.holds
    assert (printed(whole)["valid"], printed(whole)["reasons"]) == (False, ["too slow"])


def test_median_may_have_a_bound() -> None:
    whole = Outcome({"kib": at_most(4, 3)})
    for value in (3.0, 9.0, 5.0):
        whole.add("kib", value)

    assert whole.missed == ["kib is 5, not at most 4"]


def test_ratio_to_nothing_is_a_text_in_json() -> None:
    assert outcome([30], [0]).ratios["herdgate/uvicorn"] == math.inf
    assert printed(outcome([30], [0]))["ratios"] == {"herdgate/uvicorn": "Infinity"}


def test_people_see_results_ratios_bounds_and_who_is_missing() -> None:
    whole = outcome([10, 90, 50], [20, 5, 10])
    whole.absent = ["nginx"]
    lines = [line.split() for line in table("reject", "refusals", whole)]

    assert ["herdgate", "50", "10", "to", "90"] in lines
    assert ["herdgate/uvicorn", "5", "x"] in lines
    assert ["not", "installed,", "left", "out:", "nginx"] in lines


@pytest.mark.parametrize(
    ("slot", "reasons"),
    [
        (Slot(LEAST_DONE, 1.0, 1.0), []),
        (Slot(LEAST_DONE - 1, 1.0, 1.0), ["nginx: only 99 completed in a slot: this machine is too busy"]),
        (Slot(LEAST_DONE, 1.0, 1.0, ["1 visit: odd"]), ["nginx: 1 visit: odd"]),
    ],
)
def test_slot_with_faults_or_too_little_proves_nothing(slot: Slot, reasons: list[str]) -> None:
    assert slot.reasons("nginx") == reasons
