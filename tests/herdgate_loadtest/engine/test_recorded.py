"""Crowds in several processes become one record."""

import json

import pytest

from herdgate_loadtest.engine.record import Outcome
from herdgate_loadtest.engine.recorded import Recorded, together


def recorded(began: float, *backs_s: float | None, reasons: tuple[str, ...] = ()) -> Recorded:
    return Recorded(
        began,
        [Outcome("obey", 2, back_s, back_s) for back_s in backs_s],
        tries=2 * len(backs_s),
        admitted=len(backs_s),
        denied=len(backs_s),
        failed=1,
        denials_s=[0.1] * len(backs_s),
        admissions_s=[back_s for back_s in backs_s if back_s is not None],
        reasons=reasons,
    )


def test_two_crowds_are_one() -> None:
    record = together([recorded(5.0, 1.0, 2.0), recorded(5.0, 3.0)]).record(rate=1.0, burst=1.0)
    assert (record.clients, record.t100_s, record.denied, record.failed) == (3, 3.0, 3, 2)
    assert record.attempts_per_client == 2
    assert record.valid


def test_a_crowd_that_was_cut_later_is_back_later() -> None:
    parts = [recorded(5.5, 1.0), recorded(5.0, 1.2)]
    whole = together(parts)
    assert whole.began == 5.0
    assert [who.back_s for who in whole.outcomes] == [1.5, 1.2]
    assert sorted(whole.admissions_s) == [1.2, 1.5]
    assert [who.wait_s for who in whole.outcomes] == [1.0, 1.2], "a wait counts from its own beginning"


def test_a_client_that_never_came_back_stays_so() -> None:
    assert together([recorded(5.0, None), recorded(4.0, 1.0)]).outcomes[0].back_s is None


def test_every_reason_is_kept() -> None:
    assert together([recorded(1, 1, reasons=("a",)), recorded(1, 1, reasons=("b",))]).reasons == ["a", "b"]


def test_it_travels_as_json() -> None:
    before = recorded(5.0, 1.0, None)
    after = Recorded.of(json.loads(json.dumps(before.as_dict())))
    assert after.record(rate=1, burst=1) == before.record(rate=1, burst=1)


def test_the_ideal_may_be_another_than_that_of_one_instant() -> None:
    assert recorded(0, 4.0).record(rate=1, burst=1, ideal_s=2.0).recovery_ratio == pytest.approx(2.0)
