"""Admissions that no bucket allows."""

import pytest

from herdgate_loadtest.bench.recovery import most_beyond


@pytest.mark.parametrize(
    ("moments", "beyond"),
    [
        ([0.0] * 10, 0),
        ([0.0] * 13, 3),
        ([3.0] * 10 + [4.0] * 5, 0),  # late, but all in the bucket
        ([3.0] * 10 + [4.0] * 6, 1),
        ([4.0] * 6 + [3.0] * 10, 1),
        ([0.0, 10.0], -9),
        ([], -10),
    ],
)
def test_admissions_beyond_bucket_and_refill_of_the_worst_window(moments: list[float], beyond: float) -> None:
    assert most_beyond(moments, rate=5, burst=10) == beyond
