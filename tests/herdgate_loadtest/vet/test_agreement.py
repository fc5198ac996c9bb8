"""1,000 random clients: nothing crashes, and rules and simulation, which know nothing of each other, agree."""

import random
import re
from pathlib import Path

import pytest

from herdgate_loadtest.vet.clients import client_in
from tests.herdgate_loadtest.vet.agreement import CONFIGURATIONS, SEED, compare
from tests.herdgate_loadtest.vet.configurations import configuration

PAGE = Path(__file__).parents[3] / "docs" / "vet.md"


@pytest.mark.timeout(600)
@pytest.mark.xdist_group("vet-agreement")
def test_rules_and_fleet_agree_on_95_of_100_and_the_documentation_lists_the_rest() -> None:
    found = compare(SEED, CONFIGURATIONS)
    page = PAGE.read_text()
    assert found.share >= 0.95
    assert found.safe >= 0.9 * (found.safe + found.fleet_only.total()), "of those that rules call safe"
    assert f"{found.safe} safe to both, {found.unsafe} unsafe to both" in page
    listed = {
        (side, kind): int(count) for side, kind, count in re.findall(r"\| (rules|fleet) \| `(.+)` \| (\d+) \|", page)
    }
    counted = {("rules", kind): count for kind, count in found.rules_only.items()}
    counted |= {("fleet", kind): count for kind, count in found.fleet_only.items()}
    assert listed == counted


def test_random_settings_use_every_setting() -> None:
    rng = random.Random(SEED)
    keys = {key for _ in range(CONFIGURATIONS) for key in configuration(rng)}
    (first,) = [client_in({"client_id": ("client_id", "c")})]
    assert keys == {each.name for each in first.effective}
