"""What a round of a fleet is as JSON, and whether it went well."""

import json
import math

import pytest

from herdgate_loadtest.demo.leased.losses import Loss, Round
from herdgate_loadtest.engine import Outcome, Record, compute_record


def record(*backs: float | None, reasons: tuple[str, ...] = ()) -> Record:
    outcomes = [Outcome("obey", 1, back_s, back_s) for back_s in backs]
    return compute_record(
        outcomes, rate=10.0, burst=1.0, denied=0, failed=0, denials_s=[], admissions_s=[], reasons=reasons
    )


def test_each_loss_is_told_beside_its_record() -> None:
    worker, gateway = Loss("worker-1", 0.71234, record(0.5, 1.25)), Loss("gateway-1", None, record(0.25))
    told = json.loads(json.dumps(Round((worker, gateway)).as_dict(), allow_nan=False))

    assert told == {
        "valid": True,
        "losses": [
            {"killed": "worker-1", "owned_s": 0.7123, "back_s": 1.25, "record": worker.record.as_dict()},
            {"killed": "gateway-1", "owned_s": None, "back_s": 0.25, "record": gateway.record.as_dict()},
        ],
    }


def test_what_never_came_is_infinite_in_words() -> None:
    (told,) = Round((Loss("worker-1", math.inf, record(None)),)).as_dict()["losses"]
    assert (told["owned_s"], told["back_s"]) == ("Infinity", "Infinity")


@pytest.mark.parametrize(
    ("worse", "is_valid"),
    [
        (Loss("gateway-1", None, record(0.5, None)), True),
        (Loss("gateway-1", None, record(0.5, reasons=("scheduler lag",))), False),
        (Loss("worker-2", math.inf, record(0.5)), True),
    ],
    ids=["somebody is not back", "the generator spoiled it", "shards of nobody"],
)
def test_round_is_good_if_both_losses_are(worse: Loss, is_valid: bool) -> None:
    good = Loss("worker-1", 0.7, record(0.5))
    assert Round((good, good)).is_good
    assert not Round((good, worse)).is_good
    assert Round((good, worse)).as_dict()["valid"] is is_valid
