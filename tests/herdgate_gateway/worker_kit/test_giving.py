"""What a worker asks of its owner of shards beside gains and losses: to look at one, and to give some away."""

import asyncio
from collections.abc import Callable

from herdgate_gateway.leases.acts import Write
from herdgate_gateway.leases.owner import Setup, ShardOwner
from herdgate_gateway.leases.rows import worker_key
from tests.herdgate_gateway.leases.fleet import FLEET, Fleet, Node, until, virtually
from tests.herdgate_gateway.leases.links import LOST, moment
from tests.herdgate_gateway.leases.puts import ANYHOW


async def settled(*names: str, shards: int = 6) -> Fleet:
    """Workers that have shared all shards out."""
    fleet = Fleet(shards=shards)
    for name in names:
        fleet.node(name).start()
    await until(fleet.is_settled, "each shard has an owner", within_s=30.0)
    return fleet


def owner_of(node: Node) -> ShardOwner:
    assert node.owner is not None
    return node.owner


@virtually
async def test_shard_that_is_mine_without_my_knowing_is_adopted() -> None:
    fleet = await settled("w")
    owner = owner_of(fleet.nodes["w"])
    assert owner.life is not None
    await fleet.own(3, owner.life.row, 9)
    row = await owner.adopt(3)
    assert row is not None
    assert (row.owner, row.epoch, owner.epoch(3)) == ("w", 9, 9)


@virtually
async def test_shard_of_somebody_else_is_told_and_dropped() -> None:
    fleet = await settled("w")
    owner, other = owner_of(fleet.nodes["w"]), fleet.node("v")
    await fleet.own(3, other.row, 9)
    row = await owner.adopt(3)
    assert row is not None
    assert (row.owner, row.epoch, owner.epoch(3)) == ("v", 9, None)


@virtually
async def test_shard_that_was_given_away_is_not_adopted_with_its_old_epoch() -> None:
    fleet = await settled("u", "v")
    giver = fleet.nodes["u"]
    shard = min(giver.held)
    owner = owner_of(giver)
    epoch = owner.epoch(shard)
    giver.link.strike("ownership", LOST)
    giving = asyncio.ensure_future(owner.give([shard]))
    await until(lambda: owner.epoch(shard) is None, "it is frozen", within_s=1.0)
    row = await owner.adopt(shard)  # as the write was lost, the table still says that it is mine
    assert row is not None
    assert (row.owner, row.epoch) == ("u", epoch)
    assert owner.epoch(shard) is None
    await giving


@virtually
async def test_nothing_is_read_between_two_lives_or_without_a_right() -> None:
    fleet = Fleet()
    node = fleet.node("w")
    owner = node.start()
    assert await owner.adopt(3) is None
    await until(fleet.is_settled, "it is up", within_s=5.0)
    assert await owner.adopt(fleet.shards) is None, "there is no such shard"
    node.link.strike_all("beat", LOST)
    await asyncio.sleep(5.0)
    reads = len(node.link.read_keys)
    assert await owner.adopt(3) is None
    assert not [key for _, key in node.link.read_keys[reads:] if key.sk == "@"]


@virtually
async def test_given_shards_go_and_the_others_stay() -> None:
    fleet = await settled("u", "v", shards=20)
    giver, owner = fleet.nodes["u"], owner_of(fleet.nodes["u"])
    had = sorted(giver.held)
    await owner.retire()
    await owner.give(had[:2])
    await owner.give(had[:2])
    await until(fleet.is_settled, "the other one has them", within_s=1.0)
    await asyncio.sleep(30.0)
    assert sorted(giver.held) == had[2:], "nothing more is given, nor taken back"
    row = await fleet.worker("u")
    assert row is not None
    assert row.st == "DRAINING"
    await owner.stop()
    await until(fleet.is_settled, "the rest follows", within_s=1.0)
    assert giver.held == set()
    assert fleet.oracle.violations == []


@virtually
async def test_who_has_retired_finds_deaths_all_the_same_and_gives_to_who_lives() -> None:
    fleet = await settled("u", "v", "w", shards=20)
    owner = owner_of(fleet.nodes["u"])
    mine = sorted(fleet.nodes["u"].held)
    await owner.retire()
    await fleet.nodes["v"].kill()
    await asyncio.sleep(20.0)
    await owner.give(mine)
    for shard in mine:
        given = await fleet.shard(shard)
        assert given is not None
        assert given.owner == "w"


@virtually
async def test_who_has_retired_takes_nothing_of_the_dead() -> None:
    fleet = await settled("u", "v", shards=20)
    node = fleet.nodes["u"]
    had = node.held
    await owner_of(node).retire()
    await fleet.nodes["v"].kill()
    await asyncio.sleep(90.0)
    assert node.held == had


@virtually
async def test_gift_that_was_on_its_way_when_its_receiver_retired_is_served_and_given_on() -> None:
    fleet = await settled("u", "v")
    node, owner = fleet.nodes["u"], owner_of(fleet.nodes["u"])
    await owner.retire()
    await asyncio.sleep(2.0)
    assert owner.life is not None
    shard = min(fleet.nodes["v"].held)
    await fleet.own(shard, owner.life.row, 9)
    owner.notice([shard])
    await until(lambda: owner.epoch(shard) == 9, "it is served", within_s=1.0)
    await owner.stop()
    assert node.held == set()
    given = await fleet.shard(shard)
    assert given is not None
    assert (given.owner, given.epoch) == ("v", 10)


@virtually
async def test_life_that_ends_after_retiring_is_the_last_one() -> None:
    fleet = await settled("w")
    node, owner = fleet.nodes["w"], owner_of(fleet.nodes["w"])
    await owner.retire()
    await fleet.declare_dead("w", node.inc)
    await asyncio.sleep(10.0)
    assert (len(node.incs), owner.life) == (1, None)
    await owner.stop()


@virtually
async def test_stop_after_retiring_says_draining_once_and_leaves_no_row_that_looks_alive() -> None:
    fleet = await settled("w")
    node, owner = fleet.nodes["w"], owner_of(fleet.nodes["w"])
    await owner.retire()
    await owner.stop()
    await asyncio.sleep(5.0)
    assert node.link.kinds()["state"] == 2
    row = await fleet.worker("w")
    assert row is not None
    assert (row.st, len(node.incs)) == ("DEAD", 1)


class Releasing:
    """An owner that has something to end before it gives a shard away.

    Attributes:
        log: what happened, and when.
    """

    def __init__(self, fleet: Fleet, name: str, takes_s: Callable[[int], float]) -> None:
        self.node, self.log = fleet.node(name), list[tuple[str, int, float]]()
        self._takes_s = takes_s
        node = self.node
        setup = Setup(
            node.link,
            node.machine,
            FLEET,
            node.row,
            node.beats,
            node.new_inc,
            lambda: 0.5,
            fleet.tell,
            shards=fleet.shards,
        )
        node.owner = ShardOwner(setup, lambda shard, epoch: None, self._lost, self._release)
        node.machine.start(node.owner.run())

    def _lost(self, shard: int, epoch: int) -> None:
        self.log.append(("lost", shard, moment()))

    async def _release(self, shard: int) -> None:
        self.log.append(("releasing", shard, moment()))
        await asyncio.sleep(self._takes_s(shard))
        self.log.append(("released", shard, moment()))


@virtually
async def test_what_has_to_end_before_a_shard_goes_is_waited_for_while_it_may_still_write() -> None:
    fleet = Fleet(shards=4)
    leaving = Releasing(fleet, "u", lambda shard: 1.0)
    await until(lambda: len(leaving.node.held) == 4, "it has all", within_s=10.0)
    await owner_of(leaving.node).stop()
    for shard in range(4):
        assert [what for what, which, _ in leaving.log if which == shard] == ["releasing", "released", "lost"]
    assert max(at for what, _, at in leaving.log if what == "released") - leaving.log[0][2] < 1.5, "all together"


@virtually
async def test_shard_goes_as_soon_as_what_goes_on_in_it_has_ended() -> None:
    fleet = Fleet(shards=8)
    leaving = Releasing(fleet, "u", lambda shard: {2: 1.0, 5: 3.0}.get(shard, 0.0))
    await until(lambda: len(leaving.node.held) == 8, "it has all", within_s=10.0)
    fleet.node("v").start()
    await asyncio.sleep(2.0)
    before = {shard for what, shard, _ in leaving.log if what == "lost"}
    began = moment()
    await owner_of(leaving.node).stop()
    took = {shard: at - began for what, shard, at in leaving.log if what == "lost" and shard not in before}
    for shard, seconds in took.items():
        assert {2: 1.0, 5: 3.0}.get(shard, 0.0) <= seconds < {2: 1.5, 5: 3.5}.get(shard, 0.5)
        row = await fleet.shard(shard)
        assert row is not None
        assert row.owner == "v"
    assert {2, 5} <= set(took)


@virtually
async def test_what_does_not_end_is_not_waited_for_for_ever() -> None:
    fleet = Fleet(shards=4)
    leaving = Releasing(fleet, "u", lambda shard: 1_000.0)
    await until(lambda: len(leaving.node.held) == 4, "it has all", within_s=10.0)
    began = moment()
    await owner_of(leaving.node).stop()
    assert moment() - began < 7.0
    assert {what for what, _, _ in leaving.log} == {"releasing", "lost"}


@virtually
async def test_row_of_a_worker_that_is_gone_is_no_successor() -> None:
    fleet = await settled("w")
    owner = owner_of(fleet.nodes["w"])
    sets = {"inc": "old", "st": "UP", "hb": 0, "lease_ms": 3_000, "addr": "", "capacity": 1, "load": 0}
    await fleet.table.write(Write(worker_key(FLEET, "old"), ANYHOW, sets))
    await asyncio.sleep(0.2)
    await owner.give([0, 1])
    assert sorted(owner.held) == list(range(fleet.shards))
