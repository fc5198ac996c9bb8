"""The shards that one life serves: gains and losses come in pairs, and nothing that is on its way out comes back."""

from collections import defaultdict

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from herdgate_gateway.leases.holdings import Holdings

Told = list[tuple[str, int, int]]


@pytest.fixture
def told() -> Told:
    return []


@pytest.fixture
def holdings(told: Told) -> Holdings:
    return Holdings(lambda *what: told.append(("gained", *what)), lambda *what: told.append(("lost", *what)))


def test_what_is_held_may_be_acted_on_with_its_epoch(holdings: Holdings, told: Told) -> None:
    holdings.hold(3, 7, 50.0)
    assert holdings.epoch(3) == 7
    assert holdings.since(3) == 50.0
    assert list(holdings) == [3]
    assert len(holdings) == 1
    assert told == [("gained", 3, 7)]


def test_what_is_not_held_has_no_epoch(holdings: Holdings, told: Told) -> None:
    assert holdings.epoch(3) is holdings.since(3) is holdings.freeze(3) is None
    holdings.lapse()
    assert list(holdings) == []
    assert told == []


@pytest.mark.parametrize("epoch", [6, 7])
def test_what_is_known_stays_as_it_is(holdings: Holdings, told: Told, epoch: int) -> None:
    holdings.hold(3, 7, 50.0)
    holdings.hold(3, epoch, 60.0)
    assert (holdings.epoch(3), holdings.since(3)) == (7, 50.0)
    assert told == [("gained", 3, 7)]


def test_higher_epoch_is_another_ownership(holdings: Holdings, told: Told) -> None:
    holdings.hold(3, 7, 50.0)
    holdings.hold(3, 9, 60.0)
    assert (holdings.epoch(3), holdings.since(3)) == (9, 60.0)
    assert told == [("gained", 3, 7), ("lost", 3, 7), ("gained", 3, 9)]


def test_frozen_one_is_not_acted_on_and_is_told_once(holdings: Holdings, told: Told) -> None:
    holdings.hold(3, 7, 50.0)
    assert holdings.freeze(3) == 7
    assert holdings.freeze(3) is holdings.epoch(3) is holdings.since(3) is None
    assert list(holdings) == [3], "it is still on its way"
    holdings.gave(3, 7)
    assert list(holdings) == []
    assert told == [("gained", 3, 7), ("lost", 3, 7)]


def test_frozen_one_does_not_thaw_by_a_read(holdings: Holdings, told: Told) -> None:
    holdings.hold(3, 7, 50.0)
    holdings.freeze(3)
    holdings.hold(3, 7, 60.0)
    assert holdings.epoch(3) is None


def test_frozen_one_that_is_found_again_with_a_higher_epoch_came_back_from_its_successor(
    holdings: Holdings, told: Told
) -> None:
    holdings.hold(3, 7, 50.0)
    holdings.freeze(3)
    holdings.hold(3, 9, 60.0)
    assert holdings.epoch(3) == 9
    assert told == [("gained", 3, 7), ("lost", 3, 7), ("gained", 3, 9)]
    holdings.gave(3, 7)  # only now is it known what came of the write
    assert holdings.epoch(3) == 9


@pytest.mark.parametrize(("epoch", "is_held"), [(6, False), (7, False), (8, True)])
def test_what_was_given_away_is_held_again_only_with_a_higher_epoch(
    holdings: Holdings, epoch: int, is_held: bool
) -> None:
    holdings.hold(3, 7, 50.0)
    holdings.freeze(3)
    holdings.gave(3, 7)
    holdings.gave(3, 5)
    holdings.hold(3, epoch, 60.0)
    assert (holdings.epoch(3) == epoch) is is_held


def test_what_somebody_else_has_is_lost_without_having_been_frozen(holdings: Holdings, told: Told) -> None:
    holdings.hold(3, 7, 50.0)
    holdings.gave(3, 7)
    assert told == [("gained", 3, 7), ("lost", 3, 7)]


def test_what_has_lapsed_may_be_found_again(holdings: Holdings, told: Told) -> None:
    holdings.hold(3, 7, 50.0)
    holdings.lapse()
    holdings.hold(3, 7, 60.0)
    assert (holdings.epoch(3), holdings.since(3)) == (7, 60.0)
    assert told == [("gained", 3, 7), ("lost", 3, 7), ("gained", 3, 7)]


def test_lapse_drops_all_but_what_is_on_its_way_out(holdings: Holdings, told: Told) -> None:
    for shard in range(4):
        holdings.hold(shard, 7, 50.0)
    holdings.freeze(2)
    holdings.lapse()
    assert list(holdings) == [2]
    assert sorted(told[4:]) == [("lost", shard, 7) for shard in range(4)]
    holdings.hold(2, 7, 60.0)
    assert holdings.epoch(2) is None, "still on its way"


class AnyOrder(RuleBasedStateMachine):
    """Whatever is called in whatever order."""

    shards, epochs = st.integers(0, 2), st.integers(1, 6)

    def __init__(self) -> None:
        super().__init__()
        self.open: dict[int, int] = {}
        self.on_their_way: dict[int, int] = {}
        self.given: defaultdict[int, int] = defaultdict(int)
        self.holdings = Holdings(self._gained, self._lost)

    def _gained(self, shard: int, epoch: int) -> None:
        assert shard not in self.open, "one gain, one loss"
        assert epoch > self.given[shard], "what was given away stays away"
        assert epoch > self.on_their_way.get(shard, 0), "what is frozen never thaws"
        self.open[shard] = epoch

    def _lost(self, shard: int, epoch: int) -> None:
        assert self.open.pop(shard, None) == epoch, "a loss is of what was gained"

    @rule(shard=shards, epoch=epochs)
    def hold(self, shard: int, epoch: int) -> None:
        self.holdings.hold(shard, epoch, 0.0)

    @rule(shard=shards)
    def freeze(self, shard: int) -> None:
        epoch = self.holdings.freeze(shard)
        if epoch is not None:
            self.on_their_way[shard] = epoch

    @rule(shard=shards, epoch=epochs)
    def gave(self, shard: int, epoch: int) -> None:
        self.holdings.gave(shard, epoch)
        self.given[shard] = max(epoch, self.given[shard])

    @rule()
    def lapse(self) -> None:
        self.holdings.lapse()

    @invariant()
    def what_was_told_is_what_may_be_acted_on(self) -> None:
        acted_on = {s: epoch for s in range(3) if (epoch := self.holdings.epoch(s)) is not None}
        assert acted_on == self.open


def test_one_gain_is_one_loss_and_nothing_comes_back_whatever_the_order() -> None:
    run_state_machine_as_test(AnyOrder)
