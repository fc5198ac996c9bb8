"""Plots and pages, and clocks of other machines."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_loadtest.chart import Line, chart
from herdgate_loadtest.engine import compute_record
from herdgate_loadtest.engine.record import Outcome
from herdgate_loadtest.herd.clocks import boot_id, offset_of
from herdgate_loadtest.herd.report import back_chart, page, per_second_chart, table

SVG = "{http://www.w3.org/2000/svg}"


def lines_of(svg: str) -> list[list[tuple[float, float]]]:
    drawn = [line.attrib["points"].split() for line in ET.fromstring(svg).iter(f"{SVG}polyline")]
    return [[(float(x), float(y)) for x, _, y in (point.partition(",") for point in points)] for points in drawn]


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e9)), max_size=50))
def test_every_point_is_within_the_frame(points: list[tuple[float, float]]) -> None:
    for line in lines_of(chart("t", "x", [Line("a", "red", sorted(points))])):
        assert all(64 <= x <= 744.1 and 27.9 <= y <= 220.1 for x, y in line)


def test_text_of_others_is_escaped() -> None:
    svg = chart("<b>", "x & y", [Line("<script>", "red", [(0, 1)])])
    assert "<script>" not in svg
    assert "<b>" not in svg
    ET.fromstring(svg)
    assert "<script>" not in page("<script>", [])


def test_a_step_holds_until_the_next_one() -> None:
    (line,) = lines_of(chart("t", "x", [Line("a", "red", [(0, 0), (1, 10)], is_stepped=True)]))
    assert line == [(64.0, 220.0), (744.0, 220.0), (744.0, 28.0)]


def test_many_points_are_thinned_and_the_last_one_stays() -> None:
    points = [(float(x), float(x)) for x in range(10_000)]
    (line,) = lines_of(chart("t", "x", [Line("a", "red", points)]))
    assert len(line) < 1000
    assert line[-1] == pytest.approx((743.9, 28.0), abs=0.1)


def test_charts_show_what_was_recorded() -> None:
    outcomes = [Outcome("<obey>", 2, back_s, back_s) for back_s in (0.2, 1.2, None)]
    record = compute_record(outcomes, rate=2, burst=1, denied=1, failed=0, denials_s=[0.1], admissions_s=[0.2, 1.2])
    ideal, rate = lines_of(back_chart(record, [0.2, 1.2]))[1], lines_of(per_second_chart(record, [0.2, 1.2], {}))[-1]
    assert len(ideal) == 2
    assert rate[0][1] == rate[1][1], "the rate is one line across"
    assert "&lt;obey&gt;" in table(record)
    assert "2 of 3 back" in table(record)


def test_clock_of_another_machine_is_known_to_half_the_way_of_a_question() -> None:
    offset = offset_of(asked_at=10.0, theirs=1010.3, answered_at=10.2)
    assert offset.seconds == pytest.approx(1000.2)
    assert offset.error_s == pytest.approx(0.1)


def test_processes_of_one_machine_have_one_boot_id() -> None:
    assert boot_id() == boot_id()
