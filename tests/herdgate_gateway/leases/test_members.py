"""Who is there, who is declared dead, and when not: whoever has trouble itself holds back, for a while."""

import asyncio

import pytest

from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.members import Members
from herdgate_gateway.leases.rows import worker_partitions
from herdgate_gateway.leases.table import TableError
from herdgate_gateway.leases.watching import Watch
from tests.herdgate_gateway.leases.fleet import FLEET, Fleet, Node, beat_once, until, virtually
from tests.herdgate_gateway.leases.links import LOST, Link, moment

L = 3.0
PATIENCE_S = 1.02 * L


class Observer:
    """A life that looks at the others, twice a second.

    Attributes:
        trouble_at: of its own beats, as it is told.
        is_troubled: it is trouble at every look.
    """

    def __init__(self, fleet: Fleet, node: Node, life: Life) -> None:
        self.fleet, self.link, self.life = fleet, node.link, life
        self.trouble_at: float | None = None
        self.is_troubled = False
        self.members = Members(life, Watch(L), fleet.shards, lambda: self.trouble_at)

    async def look(self) -> bool:
        await beat_once(self.life)
        if self.is_troubled:
            self.trouble_at = self.life.clock.now()
        return await self.members.poll()

    async def look_for(self, seconds: float) -> None:
        """At least so long."""
        end = moment() + seconds
        while moment() < end:
            await self.look()
            await asyncio.sleep(0.5)

    async def state_of(self, worker: str) -> str:
        row = await self.fleet.worker(worker)
        assert row is not None
        return row.st


async def observer(*, pace: float = 1.0, offset_s: float = 0.0) -> Observer:
    fleet = Fleet()
    node = fleet.node("me", pace=pace, offset_s=offset_s)
    return Observer(fleet, node, await node.live())


def fences(link: Link) -> int:
    return link.kinds()["fence"]


@virtually
async def test_first_look_is_news_and_the_next_one_is_not() -> None:
    it = await observer()
    assert it.members.placement.ranked(0) == []
    assert it.members.up == {}
    assert await it.look() is True
    assert it.members.placement.ranked(0) == ["me"]
    assert list(it.members.up) == ["me"]
    assert await it.look() is False, "beats and loads are no news"


@virtually
async def test_one_that_comes_is_news_after_some_looks() -> None:
    it = await observer()
    await it.look()
    await it.fleet.node("other").live()
    news = [await it.look() for _ in range(10)]
    assert news.count(True) == 1
    assert set(it.members.up) == {"me", "other"}
    assert set(it.members.placement.ranked(0)) == {"me", "other"}


@virtually
async def test_all_there_are_are_read_at_the_first_ten_looks_and_at_every_tenth_then_the_known_rows() -> None:
    it = await observer()
    await it.fleet.node("other").live()
    read: list[list[str]] = []
    for _ in range(21):
        before = len(it.link.read_keys)
        await it.look()
        read.append(sorted(key.sk for _, key in it.link.read_keys[before:]))
    whole = [""] * len(list(worker_partitions(FLEET)))
    assert [number for number, keys in enumerate(read) if keys == whole] == [*range(11), 20]
    assert all(keys == ["me", "other"] for keys in read if keys != whole)


@virtually
async def test_one_that_is_declared_dead_by_somebody_is_news_at_the_next_look_and_has_no_rank() -> None:
    it = await observer()
    other = await it.fleet.node("other").live()
    await it.look()
    assert set(it.members.up) == {"me", "other"}
    since = it.members.since
    await it.fleet.declare_dead("other", other.row.inc)
    assert await it.look() is True
    assert set(it.members.up) == {"me"}
    assert it.members.placement.ranked(0) == ["me"]
    assert it.members.since > since
    assert fences(it.link) == 0


@virtually
async def test_one_that_leaves_has_no_rank() -> None:
    it = await observer()
    owner = it.fleet.node("other").start()
    await until(lambda: bool(owner.held), "it is up", within_s=10.0)
    await it.look_for(6.0)
    assert set(it.members.up) == {"me", "other"}
    it.fleet.nodes["other"].link.strike_all("ownership", LOST)  # so it stays in the middle of its leaving
    leaving = asyncio.ensure_future(owner.stop())
    await asyncio.sleep(0.1)
    assert await it.look() is True
    assert set(it.members.up) == {"me"}
    assert await it.state_of("other") == "DRAINING"
    leaving.cancel()
    await it.fleet.nodes["other"].kill()


@virtually
async def test_ranks_without_one_are_those_of_the_others() -> None:
    it = await observer()
    await it.fleet.node("other").live()
    await it.look()
    assert it.members.without("me").first_for("other") == list(range(it.fleet.shards))
    assert it.members.without("other").first_for("me") == list(range(it.fleet.shards))


@pytest.mark.parametrize(("pace", "offset_s"), [(1.0, 0.0), (1.06, -30.0), (0.94, 30.0), (1.0005, 3_600.0)])
def test_silent_one_is_declared_dead_when_patience_is_over_by_my_own_clock(pace: float, offset_s: float) -> None:
    @virtually
    async def play() -> None:
        it = await observer(pace=pace, offset_s=offset_s)
        await it.fleet.node("other").live()
        began = moment()
        await it.look_for(PATIENCE_S / pace - 0.3)
        assert fences(it.link) == 0
        await it.look_for(1.0)
        assert fences(it.link) == 1
        assert await it.state_of("other") == "DEAD"
        assert moment() - began < PATIENCE_S / pace + 2.0
        assert it.fleet.oracle.violations == []

    play()


@virtually
async def test_one_that_beats_on_is_left_alone() -> None:
    it = await observer()
    node = it.fleet.node("other", pace=0.94)
    node.machine.start(node.beats(await node.live()).run(lambda: None, lambda: None))
    await it.look_for(60.0)
    assert fences(it.link) == 0
    await node.kill()


@virtually
async def test_nobody_is_declared_dead_without_a_right_of_my_own() -> None:
    it = await observer()
    await it.fleet.node("other").live()
    await it.look()
    await asyncio.sleep(10.0)
    await it.members.poll()
    assert fences(it.link) == 0
    await it.look()
    assert fences(it.link) == 1


@virtually
async def test_i_do_not_declare_myself_dead() -> None:
    it = await observer()
    await it.look()
    for _ in range(20):
        await asyncio.sleep(0.5)
        await it.members.poll()
    it.life.right.renew(it.life.clock.now())
    await it.members.poll()
    assert fences(it.link) == 0


@virtually
async def test_look_that_fails_is_told() -> None:
    it = await observer()
    it.fleet.nodes["me"].faults.away = True
    with pytest.raises(TableError):
        await it.members.poll()


@virtually
async def test_whoever_has_trouble_itself_holds_back_for_two_leases_and_no_longer() -> None:
    it = await observer()
    await it.fleet.node("other").live()
    it.is_troubled = True
    await it.look_for(PATIENCE_S + 2 * L - 0.6)
    assert fences(it.link) == 0, "it is probably me"
    await it.look_for(1.7)
    assert fences(it.link) == 1, "it hits all alike"
    assert await it.state_of("other") == "DEAD"


@virtually
async def test_trouble_that_is_over_holds_back_until_it_was_two_leases_ago() -> None:
    it = await observer()
    await it.fleet.node("other").live()
    await it.look_for(PATIENCE_S - 0.6)
    it.trouble_at = it.life.clock.now()
    await it.look_for(2 * L - 0.7)
    assert fences(it.link) == 0
    await it.look_for(1.7)
    assert fences(it.link) == 1


@virtually
async def test_trouble_of_long_ago_holds_nobody_back() -> None:
    it = await observer()
    it.trouble_at = it.life.clock.now()
    await it.look_for(3 * L)
    await it.fleet.node("other").live()
    await it.look_for(PATIENCE_S + 6.0)
    assert fences(it.link) == 1


@virtually
async def test_second_trouble_an_hour_later_holds_back_as_the_first_one_did() -> None:
    it = await observer()
    first = await it.fleet.node("first").live()
    it.is_troubled = True
    await it.look_for(PATIENCE_S + L)
    assert fences(it.link) == 0
    await it.fleet.declare_dead("first", first.row.inc)  # somebody else does, and the trouble is over
    it.is_troubled = False
    await it.look_for(3_600.0)

    await it.fleet.node("second").live()
    while "second" not in it.members.up:
        await it.look_for(0.5)
    it.is_troubled = True
    await it.look_for(PATIENCE_S + L)
    assert fences(it.link) == 0, "it is probably me, again"
    await it.look_for(2 * L)
    assert fences(it.link) == 1
