"""The bounds in docs/loadtest.md are those that the benchmarks judge by."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from herdgate_loadtest.bench.drain import measure as drain
from herdgate_loadtest.bench.figures import FIGURES, Bound
from herdgate_loadtest.bench.leases import measure as leases
from herdgate_loadtest.bench.routing import measure as routing
from herdgate_loadtest.bench.sides import deciding, health, holding, proxying, refusing

PAGE = (Path(__file__).parents[3] / "docs" / "loadtest.md").read_text()
SIDES: Mapping[str, Mapping[str, Bound]] = {
    "reject": refusing._REJECT_BOUNDS,
    "close": refusing._CLOSE_BOUNDS,
    "proxy": proxying._BOUNDS,
    "hold": holding._BOUNDS,
    "health": health._BOUNDS,
    "lease": leases._BOUNDS,
    "routing": routing._BOUNDS,
    "drain": drain._BOUNDS,
    "decide": deciding._BOUNDS,
}


@pytest.mark.parametrize("kind", SIDES)
def test_bounds_of_a_benchmark_side_by_side_are_those_of_its_table(kind: str) -> None:
    rows = re.findall(rf"^\| `{kind}` \| `([^`]+)`[^|]* \| (at [^|]+|0|1) \| ([^|]+) \|$", PAGE, re.MULTILINE)
    assert rows == [(name, str(bound), bound.aim) for name, bound in SIDES[kind].items()]


def test_bounds_of_the_fleet_are_those_of_its_table() -> None:
    part = PAGE.partition("| member | figure |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (?:`\w+` )?\| `(\w+)` \| .* \| ([^|]+) \|$", part, re.MULTILINE)
    assert rows == [(name, str(bound)) for name, bound in FIGURES.items()]
