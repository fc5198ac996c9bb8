"""The beginning of a life: over one that is dead, once that is known, and with one inc for one request."""

import asyncio

import pytest

from herdgate_gateway.leases.acts import beat
from herdgate_gateway.leases.registration import NameInUseError
from tests.herdgate_gateway.leases.fleet import FLEET, Fleet, after, beat_once, virtually
from tests.herdgate_gateway.leases.links import LOST, UNHEARD, Fault, kind_of, late, moment

L = 3.0


@virtually
async def test_first_of_its_name_begins_at_once() -> None:
    fleet = Fleet()
    life = await fleet.node("w").begin()
    assert moment() < 0.1
    assert (life.row.inc, life.row.prev, life.row.st, life.row.hb) == ("w.1", None, "UP", 0)
    assert await fleet.worker("w") == life.row


@virtually
async def test_it_gives_no_right() -> None:
    life = await Fleet().node("w").begin()
    assert not life.may_act()
    await beat_once(life)
    assert life.may_act()


@virtually
async def test_life_after_one_whose_end_was_seen_begins_at_once_and_says_which_it_replaced() -> None:
    fleet = Fleet()
    await fleet.node("w").live()
    await fleet.declare_dead("w", "w.1")
    began = moment()
    life = await fleet.node("w").begin()
    assert moment() - began < 0.1
    assert (life.row.inc, life.row.prev) == ("w.2", "w.1")
    assert await fleet.worker("w") == life.row


@virtually
async def test_life_after_one_that_is_silent_begins_when_that_one_may_be_declared_dead() -> None:
    fleet = Fleet()
    await fleet.node("w").live()
    began, node = moment(), fleet.node("w")
    life = await node.begin()
    assert 1.02 * L < moment() - began < 1.02 * L + 0.5
    assert [kind_of(write) for _, write in node.link.sent] == ["fence", "register"]
    assert life.row.prev == "w.1"


@virtually
async def test_one_that_beats_on_has_the_name() -> None:
    fleet = Fleet()
    node = fleet.node("w")
    life = await node.live()
    node.machine.start(node.beats(life).run(lambda: None, lambda: None))
    other = fleet.node("w")
    with pytest.raises(NameInUseError, match="worker 'w' is alive in another process"):
        await other.begin()
    assert other.link.sent == []
    assert moment() < 5.0


@virtually
async def test_beats_of_the_dead_that_were_on_their_way_do_not_take_the_name() -> None:
    fleet = Fleet()
    node = fleet.node("w")
    life = await node.live()
    node.link.strike("beat", late(2.0), late(3.0))
    for _ in range(2):
        await node.link.write(beat(FLEET, "w", life.row.inc, 0))
    new = await fleet.node("w").begin()
    assert new.row.prev == life.row.inc


@virtually
async def test_answer_that_did_not_come_is_asked_for_with_the_very_same_write() -> None:
    fleet = Fleet()
    node = fleet.node("w")
    node.link.strike("register", LOST, LOST, UNHEARD)
    life = await node.begin()
    writes = node.link.writes("register")
    assert len(writes) == 4
    assert all(write == writes[0] for write in writes)
    assert node.incs == ["w.1"]
    assert await fleet.worker("w") == life.row


@virtually
async def test_registration_that_was_declared_dead_before_it_was_heard_of_is_no_life() -> None:
    fleet = Fleet()
    node = fleet.node("w")
    node.link.strike("register", UNHEARD)
    node.machine.start(after(0.2, lambda: fleet.declare_dead("w", "w.1")))
    life = await node.begin()
    assert (life.row.inc, life.row.prev) == ("w.2", "w.1")
    assert await fleet.worker("w") == life.row


@virtually
async def test_name_that_another_process_gets_in_between_is_waited_for() -> None:
    """Both have found the name free: one of them registers, the other one looks anew, and comes with another inc."""
    fleet = Fleet()
    first, second = fleet.node("w"), fleet.node("w")
    here, there = await asyncio.gather(first.begin(), second.begin())
    loser, winner = sorted([here, there], key=lambda life: life.row.prev is None)
    assert loser.row.prev == winner.row.inc
    assert len(fleet.by_inc) == 3, "what was refused is not used again"
    assert moment() > 1.02 * L


@virtually
async def test_table_that_does_not_answer_is_asked_until_it_does() -> None:
    fleet = Fleet()
    node = fleet.node("w")
    node.faults.away = True
    asyncio.get_running_loop().call_later(10.0, setattr, node.faults, "away", False)
    await node.begin()
    assert 10.0 <= moment() < 10.5
    assert len(node.link.read_keys) < 60, "with a pause in between"


@virtually
async def test_fence_that_nobody_knows_of_is_not_repeated_without_a_pause() -> None:
    """A table that throttles says at once that it did nothing."""
    fleet = Fleet()
    await fleet.node("w").live()
    node = fleet.node("w")
    node.link.strike_all("fence", Fault(now=False, answers=False))
    node.machine.start(node.begin())
    await asyncio.sleep(10.0)
    assert 5 < node.link.kinds()["fence"] < 100
