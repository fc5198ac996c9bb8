"""A simulation is what a real herd of the same size does, within a tenth."""

import pytest

from tests.herdgate_loadtest.simulate.agreement import BEHAVIOURS, compare

CLIENTS, RATE = 2_000, 200.0


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_simulated_herd_is_back_as_a_real_one(behaviour: str) -> None:
    pair = compare(behaviour, CLIENTS, RATE)
    assert pair.agrees, str(pair)
