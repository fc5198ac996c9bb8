"""The bounds of the figures, and what is out of them."""

import math

import pytest

from herdgate_loadtest.bench.figures import FIGURES, missed


def test_every_figure_has_the_bound_it_is_held_to() -> None:
    assert {name: (bound.least, bound.most) for name, bound in FIGURES.items()} == {
        "overshoot": (-math.inf, 1.05),
        "recovery_ratio": (-math.inf, 1.15),
        "redis_calls_per_decision": (-math.inf, 0.1),
        "redis_calls_per_gateway_s": (-math.inf, 55),
        "cpu_us_per_decision": (-math.inf, 15),
        "added_latency_p50_ms": (-math.inf, 2),
        "over_capacity": (0, 0),
        "leak_recovery_s": (-math.inf, 12),
        "outage_admission_ratio": (0.5, 1.1),
        "sockets_lost": (0, 0),
        "flush_overadmission": (-math.inf, 1.1),
        "ticket_admissions": (1, 1),
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [("overshoot", 1.05), ("outage_admission_ratio", 0.5), ("outage_admission_ratio", 1.1), ("ticket_admissions", 1)],
)
def test_figure_at_its_bound_holds(name: str, value: float) -> None:
    assert missed({name: value}) == []


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("overshoot", 1.06, "overshoot is 1.06, not at most 1.05"),
        ("recovery_ratio", math.inf, "recovery_ratio is inf, not at most 1.15"),
        ("recovery_ratio", math.nan, "recovery_ratio is nan, not at most 1.15"),
        ("outage_admission_ratio", 0.49, "outage_admission_ratio is 0.49, not 0.5 to 1.1"),
        ("outage_admission_ratio", 1.2, "outage_admission_ratio is 1.2, not 0.5 to 1.1"),
        ("ticket_admissions", 0, "ticket_admissions is 0, not 1"),
        ("ticket_admissions", 20, "ticket_admissions is 20, not 1"),
        ("sockets_lost", 1, "sockets_lost is 1, not 0"),
    ],
)
def test_figure_out_of_its_bound_is_told_in_one_line(name: str, value: float, told: str) -> None:
    assert missed({name: value}) == [told]
