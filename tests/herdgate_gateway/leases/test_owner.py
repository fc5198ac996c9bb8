"""A worker that owns shards: one life after the other, and every gain with its loss."""

import asyncio
import logging
from collections import Counter

import pytest

from herdgate_gateway.leases.registration import NameInUseError
from tests.herdgate_gateway.leases.fleet import FLEET, Fleet, Node, Told, until, virtually
from tests.herdgate_gateway.leases.links import LOST, kind_of, moment

L = 3.0


async def settled(*names: str, shards: int = 6) -> Fleet:
    """Workers that have shared all shards out."""
    fleet = Fleet(shards=shards)
    for name in names:
        fleet.node(name).start()
    await until(fleet.is_settled, "each shard has an owner", within_s=30.0)
    return fleet


def told(node: Node, what: str) -> list[Told]:
    return [each for each in node.told if each.what == what]


def pairs_up(node: Node) -> bool:
    """Each gain has its loss, but for what it holds."""
    open_now = Counter((each.shard, each.epoch) for each in told(node, "gained"))
    open_now.subtract((each.shard, each.epoch) for each in told(node, "lost"))
    return {shard for (shard, _), n in open_now.items() if n == 1} == node.held and set(open_now.values()) <= {0, 1}


@virtually
async def test_one_worker_takes_all_shards() -> None:
    fleet = await settled("w")
    assert moment() < 5.0
    assert {each.epoch for each in fleet.nodes["w"].told} == {1}


@virtually
async def test_workers_share_the_shards_as_they_rank() -> None:
    fleet = await settled("u", "v", "w", shards=60)
    await asyncio.sleep(40.0)
    assert fleet.is_settled()
    for node in fleet.nodes.values():
        assert 10 <= len(node.held) <= 25
    assert fleet.oracle.violations == []


@virtually
async def test_nothing_is_held_before_the_first_beat() -> None:
    fleet = Fleet()
    node = fleet.node("w")
    node.link.strike_all("beat", LOST)
    owner = node.start()
    await asyncio.sleep(20.0)
    assert await fleet.worker("w") is not None
    assert owner.held == ()
    assert node.link.kinds()["ownership"] == 0
    node.link.strike_all("beat", None)
    await until(fleet.is_settled, "it has beaten", within_s=5.0)


@virtually
async def test_between_two_lives_there_is_none() -> None:
    owner = Fleet().node("w").start()
    assert (owner.life, owner.effects, owner.epoch(0)) == (None, None, None)
    assert owner.held == ()
    owner.notice([0])
    owner.news()


@virtually
async def test_everything_is_lost_before_the_right_has_run_out_and_found_again_by_the_same_life() -> None:
    fleet = await settled("w")
    node = fleet.nodes["w"]
    life = node.owner.life if node.owner is not None else None
    assert life is not None
    node.link.strike_all("beat", LOST)
    await until(lambda: not node.held, "it is lost", within_s=L)
    assert len(told(node, "lost")) == fleet.shards
    assert max(each.at for each in told(node, "lost")) < life.right.ends_at
    await asyncio.sleep(20.0)
    node.link.strike_all("beat", None)
    back = await until(fleet.is_settled, "it is found again", within_s=3.0)
    assert back > 20.0
    assert node.incs == ["w.1"]
    assert {each.epoch for each in node.told} == {1}, "nobody has taken it meanwhile"
    assert pairs_up(node)


@virtually
async def test_beat_that_was_refused_is_the_end_of_a_life_and_the_beginning_of_another() -> None:
    fleet = await settled("w")
    node = fleet.nodes["w"]
    await fleet.declare_dead("w", node.inc)
    await until(lambda: len(node.incs) == 2, "another life", within_s=2.0)
    await until(fleet.is_settled, "it takes what was its own", within_s=5.0)
    assert {each.epoch for each in told(node, "lost")} == {1}
    assert pairs_up(node)
    row = await fleet.worker("w")
    assert row is not None
    assert (row.inc, row.prev, row.st) == (node.inc, node.incs[0], "UP")


@virtually
async def test_name_of_another_process_is_not_taken() -> None:
    fleet = await settled("w")
    first = fleet.nodes["w"]
    owner = fleet.node("w").start()
    with pytest.raises(NameInUseError):
        await owner.run()
    assert first.held == set(range(fleet.shards))


@virtually
async def test_stop_gives_everything_to_the_others_and_is_dead_then() -> None:
    fleet = await settled("u", "v", "w", shards=30)
    node = fleet.nodes["u"]
    assert node.owner is not None
    mine = node.held
    began = moment()
    await node.owner.stop()
    assert moment() - began < 1.0
    for shard in mine:
        given = await fleet.shard(shard)
        assert given is not None
        assert given.owner in {"v", "w"}, "it was handed over, and not left to be found"
    assert node.held == set()
    await until(fleet.is_settled, "the others have it", within_s=1.0)
    row = await fleet.worker("u")
    assert row is not None
    assert row.st == "DEAD"
    assert {each.shard for each in told(node, "lost")} >= mine
    assert {node.link.kinds()["fence"] for node in fleet.nodes.values()} == {0}
    assert pairs_up(node)


@virtually
async def test_run_returns_after_stop_which_may_be_called_again() -> None:
    fleet = Fleet()
    node = fleet.node("w")
    owner = node.start()
    await until(fleet.is_settled, "it is up", within_s=5.0)
    await owner.stop()
    await owner.stop()
    await asyncio.sleep(30.0)
    assert owner.life is None
    assert node.incs == ["w.1"]
    assert [kind_of(write) for _, write in node.link.sent].count("state") == 2


@virtually
async def test_stop_before_there_was_a_life_leaves_none() -> None:
    fleet = Fleet()
    node = fleet.node("w")
    owner = node.start()
    await owner.stop()
    await asyncio.sleep(10.0)
    row = await fleet.worker("w")
    assert row is None or row.st == "DEAD"
    assert owner.held == ()
    assert owner.life is None


@virtually
async def test_who_is_cancelled_is_told_of_its_losses() -> None:
    fleet = await settled("w")
    node = fleet.nodes["w"]
    await node.machine.crash()
    assert node.held == set()
    assert Counter(each.shard for each in told(node, "lost")) == Counter(range(fleet.shards))


@virtually
async def test_newcomer_gets_its_part_in_a_while_and_not_all_at_once() -> None:
    fleet = await settled("u", "v", shards=60)
    began, newcomer = moment(), fleet.node("w")
    newcomer.start()
    await until(lambda: len(newcomer.held) >= 15, "its part", within_s=30.0)
    assert moment() - began > 2 * L, "the others wait until it has been there for a while"
    await asyncio.sleep(20.0)
    assert fleet.is_settled()
    moves = [each for node in fleet.nodes.values() for each in told(node, "gained") if each.at > began]
    assert len(moves) <= 60 / 2, "hardly more than its part moves"
    assert max(Counter(each.shard for each in moves).values()) == 1
    assert all(pairs_up(node) for node in fleet.nodes.values())


@virtually
async def test_large_part_of_a_newcomer_moves_a_few_at_a_time() -> None:
    fleet = await settled("u", shards=120)
    newcomer = fleet.node("v")
    newcomer.start()
    await asyncio.sleep(30.0)
    moves = sorted(each.at for each in told(newcomer, "gained"))
    assert len(moves) > 48
    assert max(sum(at <= other < at + 0.4 for other in moves) for at in moves) <= 16
    assert fleet.is_settled()


@virtually
async def test_fleet_that_does_not_change_moves_nothing() -> None:
    fleet = await settled("u", "v", "w", shards=60)
    await asyncio.sleep(30.0)
    before = [len(node.told) for node in fleet.nodes.values()]
    await asyncio.sleep(300.0)
    assert [len(node.told) for node in fleet.nodes.values()] == before


@virtually
async def test_shards_of_a_killed_one_are_taken_by_the_others_when_patience_is_over() -> None:
    fleet = await settled("u", "v", "w", shards=30)
    await asyncio.sleep(20.0)
    killed = moment()
    await fleet.nodes["u"].kill()
    at = await until(fleet.is_settled, "the others have it", within_s=10.0)
    assert L - 1.0 < at - killed < L + 3.0
    assert fleet.oracle.violations == []


@virtually
async def test_news_of_a_death_is_looked_at_at_once() -> None:
    fleet = await settled("u", "v", shards=30)
    await asyncio.sleep(20.0)
    killed, node, other = moment(), fleet.nodes["u"], fleet.nodes["v"]
    await node.kill()
    await fleet.declare_dead("u", node.inc)
    assert other.owner is not None
    other.owner.news()
    at = await until(fleet.is_settled, "it is taken", within_s=5.0)
    assert at - killed < 0.2


@virtually
async def test_shard_that_is_mine_without_my_knowing_is_held_as_soon_as_somebody_says_so() -> None:
    fleet = await settled("w")
    node = fleet.nodes["w"]
    await asyncio.sleep(20.0)
    await fleet.own(3, node.owner.life.row if node.owner and node.owner.life else node.row, 9)
    assert node.owner is not None
    assert node.owner.epoch(3) == 1
    node.owner.notice([3])
    await until(lambda: node.owner is not None and node.owner.epoch(3) == 9, "adopted", within_s=0.1)
    assert pairs_up(node)


@virtually
async def test_generation_of_the_operator_is_in_every_epoch() -> None:
    fleet = Fleet()
    fleet.node("w").start(generation=2)
    await until(fleet.is_settled, "all are held", within_s=5.0)
    for shard in range(fleet.shards):
        row = await fleet.shard(shard)
        assert row is not None
        assert row.epoch == (2 << 40) + 1


@pytest.mark.parametrize("off", [500e-6, 0.06])
def test_clocks_that_are_off_let_nobody_be_declared_dead_whose_right_runs(off: float) -> None:
    """A slow owner, fast observers, half a minute apart, and the owner is cut off again and again."""

    @virtually
    async def play() -> None:
        fleet = Fleet()
        slow = fleet.node("slow", pace=1 - off, offset_s=-30.0)
        for name in ("u", "v"):
            fleet.node(name, pace=1 + off, offset_s=30.0).start()
        slow.start()
        await until(fleet.is_settled, "each shard has an owner", within_s=30.0)
        for number in range(30):
            slow.faults.away = True
            await asyncio.sleep(2.0 + number / 10)
            slow.faults.away = False
            await asyncio.sleep(15.0 + number / 7)
        await until(fleet.is_settled, "each shard has an owner again", within_s=30.0)
        assert fleet.oracle.deaths > 10
        assert fleet.oracle.violations == []

    play()


@virtually
async def test_table_that_is_away_costs_the_right_and_everybody_comes_back_with_what_they_had() -> None:
    fleet = await settled("u", "v", "w", shards=30)
    await asyncio.sleep(20.0)
    had = {name: node.held for name, node in fleet.nodes.items()}
    for node in fleet.nodes.values():
        node.faults.away = True
    await asyncio.sleep(10.0)
    assert fleet.owned() == Counter()
    for node in fleet.nodes.values():
        node.faults.away = False
    await until(fleet.is_settled, "all are back", within_s=10.0)
    assert {name: node.held for name, node in fleet.nodes.items()} == had
    assert fleet.oracle.deaths == 0
    assert fleet.oracle.violations == []


@virtually
async def test_cut_off_from_writing_it_does_not_look_at_the_others_all_the_time() -> None:
    """Its own row is silent then; it cannot declare anybody dead anyway."""
    fleet = await settled("w")
    node = fleet.nodes["w"]
    await asyncio.sleep(20.0)
    node.link.strike_all("beat", LOST)
    await asyncio.sleep(10.0)
    before = len(node.link.read_keys)
    await asyncio.sleep(60.0)
    looks = [key for _, key in node.link.read_keys[before:] if f"{FLEET}#W" in key.pk]
    assert len(looks) < 60 * 2 * 2, "twice a second, and a partition each at every tenth"


@virtually
async def test_whoever_holds_back_does_not_look_at_the_others_all_the_time() -> None:
    """In a brown-out of the table, that would be the worst moment for it."""
    fleet = await settled("u", "v")
    node = fleet.nodes["u"]
    await asyncio.sleep(20.0)
    await fleet.nodes["v"].kill()
    await asyncio.sleep(1.0)
    node.link.strike("beat", LOST)
    await asyncio.sleep(L)
    before = len(node.link.read_keys)
    await asyncio.sleep(2.0)
    assert node.link.kinds()["fence"] == 0
    looks = [key for _, key in node.link.read_keys[before:] if f"{FLEET}#W" in key.pk]
    assert len(looks) < 30


@virtually
async def test_stop_ends_with_the_right_while_the_table_is_away() -> None:
    fleet = await settled("u", "v")
    node = fleet.nodes["u"]
    assert node.owner is not None
    node.faults.away = True
    began = moment()
    await node.owner.stop()

    assert moment() - began < 2 * L + 1
    assert node.held == set()
    assert pairs_up(node)


@virtually
async def test_stop_ends_a_worker_that_has_not_begun() -> None:
    fleet = Fleet()
    node = fleet.node("u")
    node.faults.away = True
    owner = node.start()
    await asyncio.sleep(5.0)
    await owner.stop()
    node.faults.away = False
    await asyncio.sleep(20.0)

    assert owner.life is None
    assert node.link.kinds()["beat"] == 0


@virtually
async def test_stop_that_is_cancelled_leaves_nothing_that_beats() -> None:
    fleet = await settled("u", "v")
    node = fleet.nodes["u"]
    assert node.owner is not None
    node.faults.away = True
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await node.owner.stop()
    node.faults.away = False

    assert node.held == set()
    await until(lambda: fleet.nodes["v"].held == set(range(6)), "the other one has all", within_s=30.0)


@virtually
async def test_notice_of_a_shard_that_is_none_is_passed_over() -> None:
    fleet = await settled("u")
    node = fleet.nodes["u"]
    assert node.owner is not None
    node.owner.notice([-1, 6, 9_999])
    await asyncio.sleep(20.0)

    assert node.held == set(range(6))


@virtually
async def test_nothing_is_gained_that_could_not_be_let_go_of_in_time() -> None:
    fleet = await settled("u", "v")
    node = fleet.nodes["u"]
    assert node.owner is not None
    shards = node.held
    node.link.strike_all("beat", LOST)
    for _ in range(100):  # somebody says so again and again, up to the end of the right
        node.owner.notice(shards)
        await asyncio.sleep(0.05)

    assert node.held == set()
    assert pairs_up(node)


@virtually
async def test_a_table_that_is_away_is_said_once_and_so_is_its_return() -> None:
    fleet = await settled("u")
    said = logging.getLogger("herdgate.leases")
    level = said.level
    said.setLevel(logging.INFO)
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    said.addHandler(handler)
    try:
        fleet.nodes["u"].faults.away = True
        await asyncio.sleep(20.0)
        fleet.nodes["u"].faults.away = False
        await asyncio.sleep(5.0)
    finally:
        said.removeHandler(handler)
        said.setLevel(level)

    assert [line.partition(",")[0] for line in lines] == [
        "the lease table does not answer",
        "the lease table answers again",
    ]


@virtually
async def test_a_table_that_is_away_for_a_minute_changes_nothing_but_that_nobody_acts() -> None:
    fleet = await settled("u", "v", "w")
    await asyncio.sleep(30.0)
    before = {shard: (await fleet.shard(shard)) for shard in range(6)}
    for node in fleet.nodes.values():
        node.faults.away = True
    await asyncio.sleep(1.0)
    assert fleet.is_settled(), "they act until their right ends"
    await asyncio.sleep(59.0)
    assert not fleet.owned()
    for node in fleet.nodes.values():
        node.faults.away = False
    await until(fleet.is_settled, "each has its shards again", within_s=5.0)

    assert {shard: (await fleet.shard(shard)) for shard in range(6)} == before
    assert fleet.oracle.violations == []
