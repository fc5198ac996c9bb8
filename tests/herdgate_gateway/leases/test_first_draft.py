"""What broke the first draft of the protocol, one by one, on the real code."""

import asyncio
from dataclasses import replace

import pytest

from herdgate_gateway.leases.acts import claim, register, take
from herdgate_gateway.leases.effects import Effects, NotOwnerError, UnknownOutcomeError
from herdgate_gateway.leases.handover import give_away
from herdgate_gateway.leases.holdings import Holdings
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.registration import NameInUseError
from herdgate_gateway.leases.sweep import Sweeper
from herdgate_gateway.leases.table import Done, Lost
from herdgate_gateway.leases.watching import Watch
from tests.herdgate_gateway.leases.fleet import FLEET, Fleet, beat_once, until, virtually
from tests.herdgate_gateway.leases.links import LOST, UNHEARD, again, late, moment

L = 3.0
PATIENCE_S = 1.02 * L


class Sweeping:
    """A life that only sweeps when it is told to."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.holdings = Holdings(lambda *_: None, lambda *_: None)
        self.sweeper = Sweeper(life, self.holdings, Watch(L), lambda *_: None)

    async def sweep(self, *shards: int) -> set[int]:
        """What it holds after it."""
        await beat_once(self.life)
        await self.sweeper.sweep(shards)
        return set(self.holdings)


@pytest.mark.parametrize("has_predecessor", [False, True])
def test_register_that_comes_once_more_after_death_brings_nobody_back(has_predecessor: bool) -> None:
    @virtually
    async def play() -> None:
        fleet = Fleet()
        if has_predecessor:
            await fleet.node("w").live()
            await fleet.declare_dead("w", "w.1")
        node = fleet.node("w")
        node.link.strike("register", again(20.0))
        life = await node.live()
        await fleet.declare_dead("w", life.row.inc)
        dead = await fleet.worker("w")
        await asyncio.sleep(30.0)
        assert dead is not None
        assert dead.st == "DEAD"
        assert await fleet.worker("w") == dead

    play()


@virtually
async def test_orphan_whose_owner_nobody_saw_dead_is_known_by_who_replaced_it() -> None:
    """A restart overwrites the row of the dead life before anybody has looked."""
    fleet = Fleet()
    first = await fleet.node("w").live()
    await fleet.own(2, first.row)
    observer = Sweeping(await fleet.node("observer").live())
    await fleet.declare_dead("w", first.row.inc)
    second = await fleet.node("w").live()
    row = await fleet.worker("w")
    assert row is not None
    assert (row.st, row.inc, row.prev) == ("UP", second.row.inc, first.row.inc)
    assert await observer.sweep(2) == {2}


@virtually
async def test_orphan_whose_owner_was_replaced_twice_is_known_after_a_while() -> None:
    fleet = Fleet()
    first = await fleet.node("w").live()
    await fleet.own(2, first.row)
    for _ in range(2):
        await fleet.declare_dead("w", fleet.nodes["w"].inc)
        await fleet.node("w").live()
    observer = Sweeping(await fleet.node("observer").live())
    assert await observer.sweep(2) == set()
    await asyncio.sleep(PATIENCE_S - 0.1)
    assert await observer.sweep(2) == set()
    await asyncio.sleep(0.2)
    assert await observer.sweep(2) == {2}


@pytest.mark.parametrize("has_news", [True, False])
def test_owner_that_does_not_know_that_its_take_was_done_finds_out(has_news: bool) -> None:
    """It timed out, and was carried out later: the owner lives, so nobody may take it, and nobody served it."""

    @virtually
    async def play() -> None:
        fleet = Fleet()
        fleet.carries_news = has_news
        node, other = fleet.node("w"), fleet.node("other")
        node.link.strike("ownership", *[late(5.0)] * fleet.shards)
        node.start()
        await until(lambda: node.link.kinds()["ownership"] == fleet.shards, "it tries to take all", within_s=5.0)
        other.start()
        at = await until(fleet.is_settled, "each shard is served", within_s=30.0)
        assert at < 15.0 + 1.0
        assert fleet.oracle.violations == []

    play()


@virtually
async def test_hand_over_nobody_knows_of_is_not_undone_by_a_read() -> None:
    """The write is still on its way: whoever reads its own name and goes on serves what is given away in a moment."""
    fleet = Fleet()
    giver, heir = await fleet.node("giver").live(), await fleet.node("heir").live()
    await fleet.own(2, giver.row, 4)
    it, link = Sweeping(giver), fleet.nodes["giver"].link
    assert await it.sweep(2) == {2}
    link.strike("ownership", late(8.0), *[LOST] * 20)
    giving = asyncio.ensure_future(give_away(giver, it.holdings, {2: heir.row}, lambda *_: None))
    while not giving.done():
        await asyncio.sleep(0.1)
        await it.sweep(2)  # until the write comes through, it reads that it is its own
        assert it.holdings.epoch(2) is None
    assert moment() > 8.0
    writes = link.writes("ownership")
    assert len(writes) > 10
    assert all(write == writes[0] for write in writes)
    row = await fleet.shard(2)
    assert row is not None
    assert (row.inc, row.epoch) == (heir.row.inc, 5)


@virtually
async def test_checkpoint_that_lands_after_the_successor_has_resumed_is_refused() -> None:
    fleet = Fleet()
    owner, heir = await fleet.node("owner").live(), await fleet.node("heir").live()
    name = await fleet.connect(2)
    old, new = (Effects(life, {2: epoch}.get, lambda *_: None) for life, epoch in ((owner, 4), (heir, 5)))
    await old.claim(name)
    await old.checkpoint(name, 4, 10)
    fleet.nodes["owner"].link.strike("checkpoint", late(10.0))
    with pytest.raises(UnknownOutcomeError):
        await old.checkpoint(name, 4, 20)
    assert (await new.claim(name)).last_seq == 10, "here it goes on"
    await asyncio.sleep(15.0)
    assert (await fleet.connection(name)).last_seq == 10
    await beat_once(owner)
    with pytest.raises(NotOwnerError):
        await old.checkpoint(name, 4, 21)
    await beat_once(heir)
    await new.checkpoint(name, 5, 11)
    assert (await fleet.connection(name)).last_seq == 11


@virtually
async def test_register_gives_no_right_however_often_it_was_sent() -> None:
    """A right from the retry would count from too late: the first one was done, and seen, long before."""
    fleet = Fleet()
    node, other = fleet.node("w"), fleet.node("other")
    node.link.strike("register", *[UNHEARD] * 6)
    life = await node.begin()
    assert node.link.kinds()["register"] == 7
    assert not life.may_act()
    observer = Sweeping(await other.live())
    assert await observer.sweep(2) == {2}
    sent_at = moment()
    await beat_once(life)
    assert life.right.ends_at == pytest.approx(sent_at + 0.9 * L)


@virtually
async def test_worker_that_is_registered_and_never_beats_takes_nothing_and_may_be_declared_dead() -> None:
    fleet = Fleet()
    node, other = fleet.node("w"), fleet.node("other")
    node.link.strike_all("beat", LOST)
    node.start()
    other.start()
    await until(fleet.is_settled, "the other one has it all", within_s=20.0)
    assert node.link.kinds()["ownership"] == 0
    assert other.held == set(range(fleet.shards))
    assert fleet.oracle.violations == []


@virtually
async def test_restart_does_not_declare_dead_its_own_predecessor_that_runs() -> None:
    fleet = Fleet()
    running = fleet.node("w")
    running.start()
    await until(fleet.is_settled, "it is up", within_s=5.0)
    restart = fleet.node("w")
    with pytest.raises(NameInUseError):
        await restart.begin()
    assert restart.link.sent == []
    assert running.held == set(range(fleet.shards))


@virtually
async def test_restart_waits_for_its_predecessors_right_to_end_like_anybody_else() -> None:
    fleet = Fleet()
    first = await fleet.node("w").live()
    second = await fleet.node("w").begin()
    assert second.row.prev == first.row.inc
    assert moment() > PATIENCE_S > first.right.ends_at


@virtually
async def test_owner_whose_row_has_vanished_is_followed_by_another_one() -> None:
    """Nobody is silent and nobody is dead: there is only a shard that names somebody who is not there."""
    fleet = Fleet()
    gone, other = fleet.node("gone"), fleet.node("other")
    gone.start()
    await until(fleet.is_settled, "it is up", within_s=5.0)
    await gone.kill()
    fleet.oracle.lose_worker(FLEET, "gone")
    at = moment()
    other.start()
    taken_at = await until(fleet.is_settled, "the other one has it all", within_s=20.0)
    assert taken_at - at > PATIENCE_S
    assert other.link.kinds()["tombstone"] >= 1
    assert fleet.oracle.violations == []


@virtually
async def test_owner_that_lives_and_whose_row_has_vanished_stops_before_it_is_followed() -> None:
    fleet = Fleet()
    owner, other = fleet.node("owner"), fleet.node("other")
    owner.start()
    await until(fleet.is_settled, "it is up", within_s=5.0)
    other.start()
    await asyncio.sleep(1.0)
    first = owner.inc
    fleet.oracle.lose_worker(FLEET, "owner")
    await until(lambda: owner.inc != first, "another life", within_s=3.0)
    await until(fleet.is_settled, "each shard is served", within_s=30.0)
    assert fleet.oracle.violations == []


@virtually
async def test_row_of_a_dead_one_that_was_deleted_leaves_no_orphan() -> None:
    """A take was on its way when its sender was declared dead: it lands when the row that says so is gone."""
    fleet = Fleet()
    dead = await fleet.node("w").live()
    fleet.nodes["w"].link.strike("ownership", late(5.0))
    await fleet.nodes["w"].link.write(take(FLEET, dead.row, 2, None))
    await fleet.declare_dead("w", dead.row.inc)
    fleet.oracle.lose_worker(FLEET, "w")
    await asyncio.sleep(6.0)
    observer = Sweeping(await fleet.node("observer").live())
    assert await observer.sweep(2) == set()
    await asyncio.sleep(PATIENCE_S + 0.1)
    assert await observer.sweep(2) == set(), "it sets the tombstone"
    assert await observer.sweep(2) == {2}


@virtually
async def test_register_that_comes_once_more_after_the_row_was_deleted_is_no_life() -> None:
    fleet = Fleet()
    node, observer = fleet.node("w"), fleet.node("observer")
    node.link.strike("register", again(20.0))
    life = await node.live()
    await fleet.own(2, life.row)
    await fleet.declare_dead("w", life.row.inc)
    fleet.oracle.lose_worker(FLEET, "w")
    observer.start()
    await until(fleet.is_settled, "all is taken", within_s=15.0)
    await asyncio.sleep(25.0 - moment())
    row = await fleet.worker("w")
    assert row is not None
    assert row.inc == life.row.inc, "it is here once more"
    assert observer.held == set(range(fleet.shards))
    await asyncio.sleep(10.0)
    row = await fleet.worker("w")
    assert row is not None
    assert row.st == "DEAD"


@virtually
async def test_owner_that_came_in_between_the_two_reads_is_not_taken_for_dead() -> None:
    """Read the other way round, its row would be older than its ownership."""
    fleet = Fleet()
    dead = await fleet.node("w").live()
    await fleet.own(2, dead.row)
    await fleet.declare_dead("w", dead.row.inc)
    seen = await fleet.shard(2)
    it, link = Sweeping(await fleet.node("observer").live()), fleet.nodes["observer"].link
    newcomer = replace(dead.row, inc="new", prev=dead.row.inc)

    async def come_in_between() -> None:
        assert isinstance(await fleet.table.write(register(FLEET, newcomer, replace(dead.row, st="DEAD"))), Done)
        assert isinstance(await fleet.table.write(take(FLEET, newcomer, 2, seen)), Done)

    link.meanwhile("S", come_in_between)
    assert await it.sweep(2) == set()
    row = await fleet.shard(2)
    assert row is not None
    assert row.inc == "new"
    assert link.kinds()["ownership"] == 0, "the row of its worker was read after it, strongly, and says UP"


@virtually
async def test_owner_that_comes_after_both_reads_wins_by_its_epoch() -> None:
    fleet = Fleet()
    dead = await fleet.node("w").live()
    await fleet.own(2, dead.row)
    await fleet.declare_dead("w", dead.row.inc)
    seen = await fleet.shard(2)
    it, link = Sweeping(await fleet.node("observer").live()), fleet.nodes["observer"].link
    other = await fleet.node("other").live()

    async def take_it() -> None:
        assert isinstance(await fleet.table.write(take(FLEET, other.row, 2, seen)), Done)

    link.meanwhile("W", take_it)
    assert await it.sweep(2) == set()
    assert link.kinds()["ownership"] == 1
    name = await fleet.connect(2)
    assert isinstance(await fleet.table.write(claim(FLEET, name, 2)), Done)
    assert isinstance(await fleet.table.write(claim(FLEET, name, 1)), Lost)
