"""The picture: valid, complete in itself, one curve a strategy and panel."""

import xml.etree.ElementTree as ET

import pytest

from herdgate_loadtest.simulate.herd import simulate
from herdgate_loadtest.simulate.outcome import Outcome
from herdgate_loadtest.simulate.picture import as_html, as_svg
from tests.herdgate_loadtest.simulate.scenarios import played

SVG = "{http://www.w3.org/2000/svg}"


def curves(svg: str) -> list[list[tuple[float, float]]]:
    """The points of each."""
    lines = ET.fromstring(svg).iter(f"{SVG}polyline")
    return [
        [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.attrib["points"].split())] for line in lines
    ]


@pytest.mark.parametrize("strategies", [[""], ["obey", "jitter", "fixed:15"]])
def test_each_strategy_has_a_curve_in_each_panel_within_the_picture(strategies: list[str]) -> None:
    scenario = played(500, 50)
    svg = as_svg(scenario, [simulate(scenario, strategy) for strategy in strategies])
    found = curves(svg)
    root = ET.fromstring(svg)
    assert len(found) == 3 * len(strategies)
    for points in found:
        assert len(points) > 50
        assert all(0 <= x <= float(root.attrib["width"]) for x, _ in points)
        assert all(0 <= y <= float(root.attrib["height"]) for _, y in points)


def test_who_waits_falls_from_the_top_to_the_bottom() -> None:
    scenario = played(500, 50)
    *_, waiting = curves(as_svg(scenario, [simulate(scenario)]))
    heights = [y for _, y in waiting]
    assert heights == sorted(heights), "y grows downwards"
    assert heights[-1] - heights[0] > 100


def test_texts_of_the_legend_name_the_strategies() -> None:
    scenario = played(100, 50)
    svg = as_svg(scenario, [simulate(scenario, "obey"), simulate(scenario, "fixed:15")])
    texts = [text.text for text in ET.fromstring(svg).iter(f"{SVG}text")]
    assert {"obey", "fixed:15", "100 clients, 50 a second, burst 50", "clients that wait"} <= set(texts)


@pytest.mark.parametrize(("clients", "rate"), [(1, 1), (3, 1_000), (2_000, 0.5)])
def test_small_and_long_crowds_can_be_drawn(clients: int, rate: float) -> None:
    scenario = played(clients, rate)
    assert len(curves(as_svg(scenario, [simulate(scenario)]))) == 3


def test_page_holds_picture_and_figures_and_nothing_from_elsewhere() -> None:
    scenario = played(100, 50)
    outcomes: list[Outcome] = [simulate(scenario, "obey"), simulate(scenario, "hint")]
    page = as_html(scenario, outcomes)
    assert page.startswith("<!doctype html>")
    assert page.count("<svg ") == 4, "one of three panels"
    assert page.count("<tr>") == 3
    assert page.replace('xmlns="http://www.w3.org/2000/svg"', "").count("http") == 0
