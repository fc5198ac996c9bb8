"""Giving shards away: frozen first, and until it is known what came of it."""

import asyncio

import pytest

from herdgate_gateway.leases.acts import take
from herdgate_gateway.leases.handover import give_away
from herdgate_gateway.leases.holdings import Holdings
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.rows import WorkerRow
from tests.herdgate_gateway.leases.fleet import FLEET, Fleet, after, beat_once, virtually
from tests.herdgate_gateway.leases.links import LOST, UNHEARD, Fault, again, late, moment


class Giver:
    """A life that holds shards, and a successor."""

    def __init__(self, fleet: Fleet, life: Life, heir: WorkerRow) -> None:
        self.fleet, self.life, self.heir = fleet, life, heir
        self.lost: list[tuple[float, int, int]] = []
        self.told: list[tuple[float, str, int]] = []
        self.holdings = Holdings(lambda *_: None, lambda *what: self.lost.append((moment(), *what)))
        self.link = fleet.nodes["giver"].link

    async def give(self, *shards: int) -> None:
        await give_away(self.life, self.holdings, dict.fromkeys(shards, self.heir), self._tell)

    def _tell(self, row: WorkerRow, shard: int) -> None:
        self.told.append((moment(), row.inc, shard))


async def giver(*shards: int) -> Giver:
    fleet = Fleet()
    life, heir = await fleet.node("giver").live(), await fleet.node("heir").live()
    it = Giver(fleet, life, heir.row)
    for shard in shards:
        await fleet.own(shard, life.row, 4)
        it.holdings.hold(shard, 4, life.clock.now())
    return it


@virtually
async def test_shard_is_its_successors_with_the_next_epoch_and_that_one_is_told() -> None:
    it = await giver(1, 2)
    await it.give(1)
    row = await it.fleet.shard(1)
    assert row is not None
    assert (row.owner, row.inc, row.addr, row.epoch) == ("heir", it.heir.inc, "ws://heir", 5)
    assert list(it.holdings) == [2]
    assert [told[1:] for told in it.told] == [(it.heir.inc, 1)]


@virtually
async def test_it_is_not_acted_on_from_before_the_write_is_sent() -> None:
    it = await giver(1)
    await it.give(1)
    ((lost_at, shard, epoch),) = it.lost
    assert (shard, epoch) == (1, 4)
    assert lost_at <= it.link.moments("ownership")[0] < it.told[0][0]


@pytest.mark.parametrize("fault", [LOST, UNHEARD, late(0.1), late(5.0)])
def test_write_nobody_knows_of_is_repeated_until_it_is_known(fault: Fault) -> None:
    @virtually
    async def play() -> None:
        it = await giver(1)
        it.link.strike("ownership", fault, LOST)
        await it.give(1)
        await asyncio.sleep(10.0)
        writes = it.link.writes("ownership")
        assert len(writes) == 3
        assert all(write == writes[0] for write in writes)
        row = await it.fleet.shard(1)
        assert row is not None
        assert (row.inc, row.epoch) == (it.heir.inc, 5)
        assert it.holdings.epoch(1) is None
        assert len(it.told) == 1, "not before it is known, and once"

    play()


@virtually
async def test_it_stays_frozen_as_long_as_nobody_knows_even_after_the_right_is_over() -> None:
    it = await giver(1)
    it.link.strike_all("ownership", LOST)
    asyncio.get_running_loop().call_later(60.0, it.link.strike_all, "ownership", None)
    giving = asyncio.ensure_future(it.give(1))
    for _ in range(59):
        await asyncio.sleep(1.0)
        it.holdings.lapse()
        it.holdings.hold(1, 4, it.life.clock.now())  # a read says that it is still mine
        assert it.holdings.epoch(1) is None
        assert list(it.holdings) == [1]
    await giving
    assert list(it.holdings) == []


@virtually
async def test_shard_that_somebody_has_taken_meanwhile_is_left_to_them() -> None:
    it = await giver(1)
    seen = await it.fleet.shard(1)
    third = (await it.fleet.node("third").live()).row
    it.link.strike("ownership", LOST)
    it.fleet.nodes["third"].machine.start(after(0.2, lambda: it.fleet.table.write(take(FLEET, third, 1, seen))))
    await it.give(1)
    row = await it.fleet.shard(1)
    assert row is not None
    assert (row.inc, row.epoch) == (third.inc, 5)
    assert list(it.holdings) == []


@virtually
async def test_write_that_comes_twice_changes_nothing_that_came_after() -> None:
    it = await giver(1)
    it.link.strike("ownership", again(5.0))
    await it.give(1)
    await it.fleet.declare_dead("heir", it.heir.inc)
    third = (await it.fleet.node("third").live()).row
    await it.fleet.table.write(take(FLEET, third, 1, await it.fleet.shard(1)))
    await asyncio.sleep(10.0)
    row = await it.fleet.shard(1)
    assert row is not None
    assert (row.inc, row.epoch) == (third.inc, 6)


@virtually
async def test_what_is_not_held_or_frozen_already_is_left_out() -> None:
    it = await giver(1, 2)
    it.holdings.freeze(2)
    await it.give(2, 3)
    assert it.link.kinds()["ownership"] == 0
    assert it.told == []


@virtually
async def test_nothing_is_given_without_a_right() -> None:
    it = await giver(1)
    await asyncio.sleep(3.0)
    await it.give(1)
    assert it.link.kinds()["ownership"] == 0
    assert it.holdings.epoch(1) == 4
    await beat_once(it.life)
    await it.give(1)
    assert it.link.kinds()["ownership"] == 1


@virtually
async def test_some_are_given_at_once_but_not_all_as_nobody_serves_one_whose_write_waits() -> None:
    it = await giver(*range(24))
    it.link.strike_all("ownership", Fault(takes_s=0.1))
    began = moment()
    await it.give(*range(24))
    assert list(it.holdings) == []
    assert len(it.told) == 24
    assert 0.2 < moment() - began < 1.2, "neither all at once nor one after the other"
    assert len({round(lost_at, 1) for lost_at, _, _ in it.lost}) > 1, "each is frozen only when its turn has come"
