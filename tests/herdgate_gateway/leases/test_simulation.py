"""Fleets of the real code on machines that go wrong; each seed is another story.

To play one again: `.venv/bin/pytest tests/herdgate_gateway/leases/test_simulation.py -k seeds_from_NUMBER`.
"""

import pytest

from tests.herdgate_gateway.leases.simulation.virtual import run_virtually
from tests.herdgate_gateway.leases.simulation.world import Story, World

SEEDS, AT_ONCE = 1_000, 25


async def play(seed: int) -> Story:
    return await World(seed).play()


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE), ids=lambda first: f"seeds_from_{first}")
def test_no_two_own_a_shard_and_every_shard_finds_a_home(first: int) -> None:
    stories = [run_virtually(play(seed)) for seed in range(first, first + AT_ONCE)]

    for story in stories:
        assert not story.violations, f"seed {story.seed}: {story.violations}\n" + "\n".join(story.log)
        assert not story.homeless, f"seed {story.seed}: homeless {story.homeless}\n" + "\n".join(story.log)
    assert sum(story.effects for story in stories) > 100 * AT_ONCE / 2
    assert sum(story.deaths for story in stories) > AT_ONCE


def test_one_seed_is_one_story() -> None:
    assert run_virtually(play(7)) == run_virtually(play(7))
