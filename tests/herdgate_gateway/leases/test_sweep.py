"""Finding work: what is mine is adopted, what is nobody's is taken, what lives is told."""

import asyncio

import pytest

from herdgate_gateway.leases.acts import take
from herdgate_gateway.leases.holdings import Holdings
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.rows import ShardRow, WorkerRow
from herdgate_gateway.leases.sweep import Sweeper
from herdgate_gateway.leases.table import Done, TableError
from herdgate_gateway.leases.watching import Watch
from tests.herdgate_gateway.leases.fleet import FLEET, Fleet, Node, beat_once, virtually
from tests.herdgate_gateway.leases.links import LOST, UNHEARD, Fault, late, moment

L = 3.0
PATIENCE_S = 1.02 * L


class Observer:
    """A life that sweeps."""

    def __init__(self, fleet: Fleet, node: Node, life: Life, *, generation: int = 0) -> None:
        self.fleet, self.link, self.life = fleet, node.link, life
        self.holdings = Holdings(lambda *_: None, lambda *_: None)
        self.told: list[tuple[str, int]] = []
        self.sweeper = Sweeper(
            life,
            self.holdings,
            Watch(L),
            lambda row, shard: self.told.append((row.inc, shard)),
            generation=generation,
        )

    async def sweep(self, *shards: int) -> bool:
        await beat_once(self.life)
        return await self.sweeper.sweep(shards)

    async def row(self, shard: int) -> ShardRow:
        row = await self.fleet.shard(shard)
        assert row is not None
        return row


async def observer(*, generation: int = 0) -> Observer:
    fleet = Fleet()
    node = fleet.node("me")
    return Observer(fleet, node, await node.live(), generation=generation)


async def owner_of(fleet: Fleet, shard: int, epoch: int = 4) -> WorkerRow:
    """Another worker, alive, that owns a shard."""
    row = (await fleet.node("other").live()).row
    await fleet.own(shard, row, epoch)
    return row


@virtually
async def test_shard_nobody_has_owned_yet_is_taken() -> None:
    it = await observer()
    assert await it.sweep(2) is False
    assert await it.row(2) == ShardRow(2, "me", it.life.row.inc, "ws://me", 1)
    assert it.holdings.epoch(2) == 1
    assert it.sweeper.mine == {2}


@virtually
async def test_shard_of_the_dead_is_taken_with_a_higher_epoch() -> None:
    it = await observer()
    other = await owner_of(it.fleet, 2)
    await it.fleet.declare_dead("other", other.inc)
    assert await it.sweep(2) is False
    assert (await it.row(2)).inc == it.life.row.inc
    assert it.holdings.epoch(2) == 5


@virtually
async def test_owner_that_lives_keeps_its_shard_and_is_told_of_it() -> None:
    it = await observer()
    other = await owner_of(it.fleet, 2)
    assert await it.sweep(2) is False
    assert (await it.row(2)).inc == other.inc
    assert it.told == [(other.inc, 2)]
    assert it.link.kinds()["ownership"] == 0


@virtually
async def test_what_is_mine_in_the_table_is_adopted_without_a_write() -> None:
    it = await observer()
    await it.fleet.own(2, it.life.row, 7)
    assert await it.sweep(2) is False
    assert it.holdings.epoch(2) == 7
    assert it.link.kinds()["ownership"] == 0
    assert it.told == []


@virtually
async def test_what_i_gave_away_with_this_epoch_is_not_adopted() -> None:
    it = await observer()
    await it.fleet.own(2, it.life.row, 7)
    it.holdings.gave(2, 7)
    await it.sweep(2)
    assert it.holdings.epoch(2) is None


@virtually
async def test_what_i_hold_and_somebody_else_owns_is_dropped() -> None:
    it = await observer()
    it.holdings.hold(2, 3, 0.0)
    await owner_of(it.fleet, 2)
    await it.sweep(2)
    assert list(it.holdings) == []


@virtually
async def test_row_that_is_older_than_what_i_hold_drops_nothing() -> None:
    it = await observer()
    other = await owner_of(it.fleet, 2, epoch=4)
    it.holdings.hold(2, 5, 0.0)
    await it.sweep(2)
    assert it.holdings.epoch(2) == 5
    assert other.inc in {inc for inc, _ in it.told}


@virtually
async def test_nothing_is_adopted_or_taken_without_a_right() -> None:
    it = await observer()
    await it.fleet.own(2, it.life.row, 7)
    await asyncio.sleep(L)
    await it.sweeper.sweep([1, 2])
    assert list(it.holdings) == []
    assert it.link.kinds()["ownership"] == 0
    assert await it.sweep(1, 2) is False
    assert set(it.holdings) == {1, 2}


@virtually
async def test_take_whose_answer_comes_after_the_right_is_over_is_found_by_the_next_sweep() -> None:
    it = await observer()
    it.link.strike("ownership", Fault(takes_s=L))
    await it.sweep(2)
    assert list(it.holdings) == []
    assert it.sweeper.mine == {2}
    await it.sweep(*it.sweeper.mine)
    assert it.holdings.epoch(2) == 1


@pytest.mark.parametrize(("fault", "wait_s"), [(UNHEARD, 0.0), (late(5.0), 6.0)])
def test_take_that_was_done_without_my_knowing_is_looked_at_and_adopted(fault: Fault, wait_s: float) -> None:
    @virtually
    async def play() -> None:
        it = await observer()
        it.link.strike("ownership", fault)
        await it.sweep(2)
        assert list(it.holdings) == []
        assert it.sweeper.mine == {2}
        await asyncio.sleep(wait_s)
        await it.sweep(*it.sweeper.mine)
        assert it.holdings.epoch(2) == 1
        assert it.link.kinds()["ownership"] == 1

    play()


@virtually
async def test_take_that_was_never_done_is_tried_again() -> None:
    it = await observer()
    it.link.strike("ownership", LOST)
    await it.sweep(2)
    await it.sweep(*it.sweeper.mine)
    assert it.holdings.epoch(2) == 1


@virtually
async def test_take_that_is_lost_to_my_own_one_that_came_late_is_not_forgotten() -> None:
    """The first take comes through between the reading and the second one: I am told lost, and the shard is mine."""
    it = await observer()
    other = await owner_of(it.fleet, 2)
    await it.fleet.declare_dead("other", other.inc)
    it.link.strike("ownership", LOST)
    await it.sweep(2)
    (first,) = it.link.writes("ownership")

    async def comes_through() -> None:
        assert isinstance(await it.fleet.table.write(first), Done)

    it.link.meanwhile("W", comes_through)
    await it.sweep(2)
    assert (await it.row(2)).inc == it.life.row.inc
    assert 2 in it.sweeper.mine, "adopted, or looked at again soon"


@virtually
async def test_two_that_take_the_same_get_it_once() -> None:
    it = await observer()
    node = it.fleet.node("rival")
    rival = Observer(it.fleet, node, await node.live())
    await asyncio.gather(it.sweep(0, 1, 2, 3), rival.sweep(0, 1, 2, 3))
    assert sorted([*it.holdings, *rival.holdings]) == [0, 1, 2, 3]
    for shard in range(4):
        assert (await it.row(shard)).epoch == 1


@virtually
async def test_shards_are_read_first_and_their_owners_after_them_all_strongly() -> None:
    it = await observer()
    await owner_of(it.fleet, 0)
    await it.fleet.own(1, it.life.row)
    before = len(it.link.read_keys)
    await it.sweep(0, 1, 2, 3)
    read = [key for _, key in it.link.read_keys[before:]]
    assert [key.pk.split("#")[1] for key in read] == ["S", "S", "S", "S", "W"]
    assert all(it.link.strong[before:])
    assert read[-1].sk == "other", "nobody else's row"


@virtually
async def test_owner_that_vanished_is_declared_dead_when_its_row_was_gone_for_long_enough() -> None:
    it = await observer()
    other = await owner_of(it.fleet, 2)
    it.fleet.oracle.lose_worker(FLEET, "other")
    assert await it.sweep(2) is True
    began = moment()
    while moment() - began < PATIENCE_S - 0.2:
        assert await it.sweep(2) is True
        await asyncio.sleep(0.1)
    assert it.link.kinds()["tombstone"] == 0
    await asyncio.sleep(0.4)
    assert await it.sweep(2) is True
    row = await it.fleet.worker("other")
    assert row is not None
    assert (row.inc, row.st) == (other.inc, "DEAD")
    assert await it.sweep(2) is False
    assert it.holdings.epoch(2) == 5


@virtually
async def test_tombstone_does_not_hit_one_that_registers_meanwhile() -> None:
    it = await observer()
    await owner_of(it.fleet, 2)
    it.fleet.oracle.lose_worker(FLEET, "other")
    await it.sweep(2)
    await asyncio.sleep(PATIENCE_S)
    it.link.strike("tombstone", late(1.0))
    await it.sweep(2)
    assert it.link.kinds()["tombstone"] == 1
    reborn = await it.fleet.node("other").begin()
    await asyncio.sleep(2.0)
    assert await it.fleet.worker("other") == reborn.row


@virtually
async def test_tombstone_is_not_set_without_a_right() -> None:
    it = await observer()
    await owner_of(it.fleet, 2)
    it.fleet.oracle.lose_worker(FLEET, "other")
    await it.sweep(2)
    await asyncio.sleep(10.0)
    assert await it.sweeper.sweep([2]) is True
    assert it.link.kinds()["tombstone"] == 0


@pytest.mark.parametrize("generation", [1, 3])
def test_generation_is_in_the_epoch_of_what_is_taken(generation: int) -> None:
    @virtually
    async def play() -> None:
        it = await observer(generation=generation)
        other = await owner_of(it.fleet, 2)
        await it.fleet.declare_dead("other", other.inc)
        await it.sweep(1, 2)
        assert it.holdings.epoch(1) == it.holdings.epoch(2) == (generation << 40) + 1

    play()


@virtually
async def test_shard_of_a_lower_generation_is_taken_anew_even_from_myself() -> None:
    it = await observer(generation=1)
    await it.fleet.own(2, it.life.row, 7)
    await it.sweep(2)
    assert it.holdings.epoch(2) == (1 << 40) + 1


@virtually
async def test_shard_of_a_lower_generation_is_left_to_an_owner_that_lives() -> None:
    it = await observer(generation=1)
    other = await owner_of(it.fleet, 2)
    await it.sweep(2)
    assert (await it.row(2)).inc == other.inc
    assert it.told == [(other.inc, 2)]


@virtually
async def test_worker_of_a_lower_generation_counts_on_from_a_higher_one() -> None:
    it = await observer()
    other = await owner_of(it.fleet, 2, (3 << 40) + 5)
    await it.fleet.declare_dead("other", other.inc)
    await it.sweep(2)
    assert it.holdings.epoch(2) == (3 << 40) + 6


@virtually
async def test_read_that_fails_is_told_and_changes_nothing() -> None:
    it = await observer()
    it.holdings.hold(2, 1, 0.0)
    it.fleet.nodes["me"].faults.away = True
    with pytest.raises(TableError):
        await it.sweeper.sweep([1, 2])
    assert it.holdings.epoch(2) == 1


@virtually
async def test_shard_that_was_taken_since_it_was_read_is_left_to_who_has_it() -> None:
    it = await observer()
    other = await owner_of(it.fleet, 2)
    seen, third = await it.row(2), (await it.fleet.node("third").live()).row
    await it.fleet.declare_dead("other", other.inc)

    async def take_it() -> None:
        assert isinstance(await it.fleet.table.write(take(FLEET, third, 2, seen)), Done)

    it.link.meanwhile("W", take_it)
    await it.sweep(2)
    assert (await it.row(2)).inc == third.inc
    assert list(it.holdings) == []
    assert it.sweeper.mine == set()
